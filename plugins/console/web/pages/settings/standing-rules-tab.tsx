import type { Rule, RuleFiring } from '../../../../settings/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { AskButton, FormButton } from '../../ui/dialog.js'
import { visibleName, visibleText } from '../../ui/format.js'
import { FaultLine, Item, Loaded } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { FIRED, ruleSentence, saveRules } from './standing-rules.js'
import { RuleTrial } from './rule-trial.js'
import { StandingRuleForm } from './standing-rule-form.js'

interface RulesState {
  readonly rules: readonly Rule[]
  readonly revision: string
}

interface RuleListProps extends RulesState {
  readonly firings: readonly RuleFiring[]
  readonly mayEdit: boolean
}

const RuleList = ({ rules, revision, firings, mayEdit }: RuleListProps) => {
  const action = useAction()
  const save = (next: readonly Rule[], known = revision) => saveRules(next, known)
  return (
    <section aria-labelledby="standing-rules">
      <div class="row apart">
        <h2 id="standing-rules">Rules</h2>
        {mayEdit && (
          <FormButton
            label="Add a rule"
            form={close => (
              <StandingRuleForm
                revision={revision}
                close={close}
                save={(rule, known) => save([...rules, rule], known)}
              />
            )}
          />
        )}
      </div>
      <p class="quiet">
        {rules.length === 0 && 'There is no rule. '}Rules act in this order. Where work may land, the first that fits
        decides; without one it waits for a person.
      </p>
      <ol class="items">
        {rules.map((rule, at) => {
          const fired = firings.find(({ id }) => id === rule.id)
          const label = visibleName(rule.label)
          const off = rule.enabled === false
          return (
            <Item
              key={rule.id}
              title={`${at + 1}. ${label}`}
              state={off ? ['', 'Off'] : fired && FIRED[fired.outcome]}
              detail={
                <>
                  {visibleText(ruleSentence(rule))}
                  {fired && ` · last on ${new Date(fired.at).toLocaleString()}, ${fired.count} in all`}
                </>
              }
            >
              {mayEdit && (
                <>
                  <ActionButton
                    action={action}
                    about={label}
                    disabled={at === 0}
                    data-key={`standing rule ${rule.id} up`}
                    work={() => save(rules.toSpliced(at - 1, 2, rule, rules[at - 1]!))}
                  >
                    Move up
                  </ActionButton>
                  <FormButton
                    label="Change"
                    about={label}
                    form={close => (
                      <StandingRuleForm
                        rule={rule}
                        revision={revision}
                        close={close}
                        save={(next, known) => save(rules.with(at, next), known)}
                      />
                    )}
                  />
                  <ActionButton
                    action={action}
                    about={label}
                    data-key={`standing rule ${rule.id} switch`}
                    work={() => save(rules.with(at, { ...rule, enabled: off }))}
                  >
                    {off ? 'Switch on' : 'Switch off'}
                  </ActionButton>
                  <AskButton
                    label="Remove"
                    about={label}
                    title={`Remove the rule ${label}?`}
                    work={() => save(rules.toSpliced(at, 1))}
                  >
                    <p>It no longer acts, and what it did is no longer listed.</p>
                  </AskButton>
                </>
              )}
            </Item>
          )
        })}
      </ol>
      <FaultLine fault={action.fault} />
    </section>
  )
}

/** The standing rules: what each does and did, and a trial of all. */
export const StandingRulesTab = ({ mayEdit }: { mayEdit: boolean }) => {
  const state = useQuery('standing-rules', ['settings'], () => rulesNow())
  const firings = useQuery('rule-firings', ['settings'], () => askDaemon('GET /settings/rule-firings'))
  return (
    <>
      <Loaded query={state}>
        {({ rules, revision }) => (
          <RuleList rules={rules} revision={revision} firings={firings.data ?? []} mayEdit={mayEdit} />
        )}
      </Loaded>
      <RuleTrial />
    </>
  )
}

const rulesNow = async (): Promise<RulesState> => {
  const [{ rules }, { revision }] = await Promise.all([askDaemon('GET /settings'), askDaemon('GET /settings/schema')])
  return { rules, revision }
}
