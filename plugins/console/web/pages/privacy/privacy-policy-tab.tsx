import { signal, useSignal, type Signal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { DetectorAction, ProviderTrust, ShieldPolicy, ShieldReplay } from '../../../../shield/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { CheckField, ChoiceField, TextField } from '../../ui/fields.js'
import { countText, visibleName } from '../../ui/format.js'
import { FaultLine, Item } from '../../ui/page.js'
import { WordsSection } from './words-section.js'
import { ACTION_CHOICES, enteredLines, savePrivacy, TRUST, type PrivacyProps } from './privacy-policy.js'

type Trusts = '' | ProviderTrust

const replaySentence = ({ conversations, detectors, refused, truncated }: ShieldReplay): string => {
  const sum = (field: 'added' | 'dropped') => countText(detectors.reduce((total, each) => total + each[field], 0))
  const no = refused.length > 0 ? ` It would refuse requests of ${countText(refused.length)} of them.` : ''
  const part = truncated ? ' Not all of it was compared.' : ''
  const past = `In ${countText(conversations)} past conversations`
  return `${past} it would mask ${sum('added')} places more and ${sum('dropped')} fewer.${no}${part}`
}

const ReadOnly = ({ state: { policy, providers, detectors } }: Pick<PrivacyProps, 'state'>) => (
  <section aria-labelledby="policy-heading">
    <h2 id="policy-heading">Policy</h2>
    <p>The shield is {policy.enabled ? 'on' : 'off'}. The owner can change it.</p>
    <ul class="items">
      {providers.map(({ id, label, trust, covered }) => (
        <Item key={id} title={visibleName(label)} state={TRUST[trust]} detail={covered ? id : `${id}: not covered`} />
      ))}
      {detectors.map(({ id, label, action }) => (
        <Item key={id} title={label} detail={ACTION_CHOICES.find(([choice]) => choice === action)?.[1]} />
      ))}
    </ul>
  </section>
)

/** A signal for each of some names. */
const useSignals = <T,>(entries: readonly (readonly [string, T])[]): ReadonlyMap<string, Signal<T>> =>
  useMemo(() => new Map(entries.map(([name, value]) => [name, signal(value)])), [])

const PolicyForm = ({ state }: Pick<PrivacyProps, 'state'>) => {
  const { policy, revision, providers, detectors } = state
  const enabled = useSignal(policy.enabled)
  const defaultTrust = useSignal(policy.defaultTrust)
  const binary = useSignal(policy.binary)
  const onFailure = useSignal(policy.onFailure)
  const countries = useSignal(policy.countries.join(' '))
  const languages = useSignal(policy.languages.join(' '))
  const allow = useSignal(policy.allow.join('\n'))
  const trusts = useSignals<Trusts>(providers.map(({ id }) => [id, policy.providers[id] ?? '']))
  const actions = useSignals<DetectorAction>(detectors.map(({ id, action }) => [id, action]))
  const said = useSignal('')
  const action = useAction()
  const draft = (): ShieldPolicy => {
    const named = Object.entries(policy.providers).filter(([id]) => !trusts.has(id))
    const chosen = [...trusts].flatMap(([id, { value }]) => (value === '' ? [] : [[id, value] as const]))
    return {
      ...policy,
      ...{ enabled: enabled.value, defaultTrust: defaultTrust.value, binary: binary.value, onFailure: onFailure.value },
      providers: Object.fromEntries([...named, ...chosen]),
      detectors: Object.fromEntries([...actions].map(([id, { value }]) => [id, value])),
      countries: countries.value
        .toUpperCase()
        .split(/[\s,]+/)
        .filter(Boolean),
      languages: languages.value
        .toLowerCase()
        .split(/[\s,]+/)
        .filter(Boolean),
      allow: enteredLines(allow.value),
    }
  }
  const run = (work: () => Promise<unknown>) => {
    said.value = ''
    void action.run(work)
  }
  const replay = async () => {
    said.value = replaySentence(await askDaemon('POST /shield/replay', { policy: draft() }))
  }
  return (
    <section aria-labelledby="policy-heading">
      <h2 id="policy-heading">Policy</h2>
      <form
        class="stack"
        onSubmit={event => {
          event.preventDefault()
          run(() => savePrivacy(draft(), revision))
        }}
      >
        <CheckField label="Mask personal data in what leaves for models" value={enabled} />
        <ChoiceField
          label="Providers that are not named"
          value={defaultTrust}
          choices={[
            ['shielded', 'Get tokens'],
            ['trusted', 'Get real values'],
          ]}
          hint="Models of this machine get real values."
        />
        <fieldset class="plain-fieldset stack">
          <legend>Providers</legend>
          {providers.map(({ id, label, covered }) => (
            <ChoiceField
              key={id}
              label={`${visibleName(label)} (${id})`}
              value={trusts.get(id)!}
              choices={[
                ['', 'As above'],
                ['trusted', 'Gets real values'],
                ['shielded', 'Gets tokens'],
                ['blocked', 'Gets nothing'],
              ]}
              hint={covered ? undefined : 'What it sends does not pass the shield: with tokens, its turns are refused.'}
            />
          ))}
        </fieldset>
        <fieldset class="plain-fieldset stack">
          <legend>What is found</legend>
          {detectors.map(({ id, label, examples }) => (
            <ChoiceField
              key={id}
              label={label}
              value={actions.get(id)!}
              choices={ACTION_CHOICES}
              hint={examples.join(', ')}
            />
          ))}
        </fieldset>
        <TextField label="Countries" value={countries} placeholder="DE AT" hint="For telephone and national numbers." />
        <TextField label="Languages" value={languages} placeholder="de en" hint="Of words beside a number or date." />
        <TextField label="Never masked, one a line" value={allow} rows={3} hint="A value, @domain, or 192.0.2.0/24." />
        <ChoiceField
          label="Pictures to providers that get tokens"
          value={binary}
          choices={[
            ['send', 'Send them: they are not read'],
            ['block', 'Refuse the request'],
          ]}
        />
        <ChoiceField
          label="When the shield fails"
          value={onFailure}
          choices={[
            ['block', 'Refuse the request'],
            ['send', 'Send real values'],
          ]}
        />
        <div class="row">
          <button class="button primary" type="submit" disabled={action.busy}>
            Save
          </button>
          <button class="button" type="button" disabled={action.busy} onClick={() => run(replay)}>
            What would differ
          </button>
        </div>
      </form>
      <FaultLine fault={action.fault} />
      <p role="status" dir="auto">
        {said.value}
      </p>
    </section>
  )
}

/** The policy of the shield, its lists and patterns. */
export const PrivacyPolicyTab = ({ state, owns }: PrivacyProps) =>
  owns ? (
    <>
      {/* What is being written stays while lists change, and goes when somebody else wrote. */}
      <PolicyForm key={JSON.stringify([{ ...state.policy, lists: 0, patterns: 0 }, state.providers])} state={state} />
      <WordsSection state={state} />
    </>
  ) : (
    <ReadOnly state={state} />
  )
