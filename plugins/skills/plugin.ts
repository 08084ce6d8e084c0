import type { Contract, Host } from '../../sdk/index.js'
import { skills, type SkillsCalls } from './contract.js'
import { examples } from './examples.js'
import { composeSkill, parseSkill } from './skill-text.js'
import { Skills } from './skills.js'

export const contract: Contract<SkillsCalls> = { ...skills, examples }

/** Stores the skills of agents, and loads the enabled ones. */
export const activate = async (host: Host): Promise<void> => {
  const all = new Skills(host)
  const failed = (error: unknown): void => {
    if (!host.signal.aborted) host.log.warn('loading the skills that are on failed', { error: String(error) })
  }
  // The loaded skills can be updated later, so nothing waits for it.
  host.boot('Skills', () => all.recover().catch(failed))
  host.on('settings.changed', ({ keys }) => void (keys.includes('skills') && all.converge().catch(failed)))
  const ok = { ok: true } as const
  await host.serve(skills, {
    'GET /skills': (_, context) => all.list(context),
    'POST /skills': async ({ name, description, body }, context) => {
      await all.save(name, description, body, context)
      return ok
    },
    'GET /skills/read': ({ id }, context) => all.read(id, context),
    'POST /skills/remove': async ({ name }, context) => {
      await all.remove(name, context)
      return ok
    },
    'POST /skills/enabled': async ({ id, enabled }, context) => {
      await all.setEnabled(id, enabled, context)
      return ok
    },
    'POST /skills/import': (asked, context) => all.import(asked, context),
    'skills.parse': ({ text }) => parseSkill(text),
    'skills.compose': ({ name, description, body }) => ({ text: composeSkill(name, description, body) }),
    'skills.forTurn': async asked => ({ skills: await all.forTurn(asked) }),
    'skills.text': asked => all.readForTurn(asked),
  })
}
