import { type Contract, type Host, refuse } from '../../sdk/index.js'
import { record } from '../../sdk/node/record/record.js'
import { settings, type SettingsGiven, type SettingKey, type SettingsCalls } from './contract.js'
import { examples } from './examples.js'
import { CurrentSettings, DEFAULTS, revisionOf } from './current-settings.js'
import { CATALOGUE } from '../../sdk/node/outputs/catalogue.js'
import { checkActions } from './action-rules.js'
import { checkCleaners } from './cleaner-choice.js'
import { checkAllowed } from './network-allow.js'
import { builtinPrompt } from './fields/builtin-prompt.js'
import { settingFields } from './fields/fields.js'
import { ladderOf, ladderWithEffort, MODEL_ROLES } from './models/ladder.js'
import { checkRules } from './rules/rule-checks.js'
import { ruleCalls } from './rules/calls.js'
import { savingsOf } from './savings/savings.js'
import { FILE, SettingsFile } from './settings-file.js'

export const contract: Contract<SettingsCalls> = { ...settings, examples }

/** Stores the settings of this sandbox's agents, for the groups that apply them. */
export const activate = async (host: Host): Promise<void> => {
  const file = new SettingsFile(host.place.workspace)
  const current = new CurrentSettings(file, host.store, host.log, what => {
    const { keys, by } = what
    host.emit('settings.changed', what)
    // Without `by` a person wrote the file.
    void record(host, {
      type: 'settings.changed',
      audience: 'viewer',
      outcome: 'ok',
      ...(by !== undefined && { actor: by }),
      extra: { keys },
    })
    host
      .call('kernel.events.publish', { domain: 'settings' })
      .catch(error => host.log.warn('publishing a settings change failed', { error: String(error) }))
  })
  // Leftover files are harmless, so a failed sweep must not prevent reading the settings.
  host.boot('Settings', () =>
    file.sweep().catch(error => host.log.info('removing leftover settings files failed', { error: String(error) })),
  )

  host.contribute('system.manifestProblems', async () => [{ path: FILE, problems: await current.problems() }])

  await host.serve(settings, {
    'GET /settings': () => current.read(),
    'POST /settings': async (given, { caller, http }) => {
      checkAllowed(given.networkAllow, (await host.call('kernel.listeners')).listeners, 'networkAllow')
      checkActions(given.actionRules, 'actionRules')
      checkCleaners(given.outputCleaners, 'outputCleaners')
      checkRules(given.rules, 'rules')
      await current.change({ set: { ...DEFAULTS, ...given }, holds: matching(http?.ifMatch), by: caller.actor })
      return { ok: true as const }
    },
    'POST /settings/patch': async ({ set = {}, unset = [], revision }, { caller }) => {
      checkApart(set, unset)
      checkAllowed(set.networkAllow, (await host.call('kernel.listeners')).listeners, 'set.networkAllow')
      checkActions(set.actionRules, 'set.actionRules')
      checkCleaners(set.outputCleaners, 'set.outputCleaners')
      checkRules(set.rules, 'set.rules')
      const holds = (found: string) => revision === undefined || revision === found
      const changed = await current.change({ set, merges: true, unset, holds, by: caller.actor })
      return { settings: changed, revision: revisionOf(changed) }
    },
    'settings.get': () => current.read(),
    'GET /settings/schema': async () => {
      const now = await current.read()
      return {
        revision: revisionOf(now),
        fields: settingFields(now),
        cleaners: CATALOGUE.map(each => ({ ...each, commands: [...each.commands] })),
      }
    },
    'GET /settings/savings': async ({ from, to }) =>
      savingsOf(host, await current.read(), { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }),
    'GET /settings/system-prompt/{base}': () => builtinPrompt(host),
    'GET /settings/models': async () => {
      const now = await current.read()
      return { roles: await Promise.all(MODEL_ROLES.map(role => ladderOf(host, now, role))) }
    },
    'models.ladder': async ({ role, models }) => ladderWithEffort(host, await current.read(), role, models),
    ...ruleCalls(host, async () => (await current.read()).rules),
  })
}

/** Whether a header names what it finds (RFC 9110, section 13.1.1), with or without the quotes of a tag. */
const matching =
  (header = '*') =>
  (revision: string): boolean =>
    header.split(',').some(tag => ['*', revision, `"${revision}"`].includes(tag.trim()))

const checkApart = (set: SettingsGiven, unset: readonly SettingKey[]): void => {
  const both = unset.find(key => set[key] !== undefined)
  if (both) {
    refuse('invalid', `${both}: expected in set or in unset, found in both`, {
      errors: [{ path: 'unset', expected: `no ${both}` }],
    })
  }
}
