import type { Contract, Host } from '../../sdk/index.js'
import { CardFile, CARDS_FILE } from './card-file.js'
import { personas, type PersonasCalls } from './contract.js'
import { examples } from './examples.js'
import { Kits } from './kits.js'
import { Personas } from './personas.js'

export const contract: Contract<PersonasCalls> = { ...personas, examples }

/** Stores the cards of personas with their kits, and applies them to turns. */
export const activate = async (host: Host): Promise<void> => {
  const { workspace } = host.place
  const file = new CardFile(workspace)
  const kits = new Kits(workspace)
  const all = new Personas(host, file, kits)
  host.boot('Personas', async () => {
    const { cards, wrong } = await file.read()
    // If the file cannot be read, no kit counts as orphaned.
    if (wrong === undefined) await file.alone(() => kits.recover(id => cards.has(id)))
    await file.sweep().catch(error => host.log.info('removing leftover files failed', { error: String(error) }))
  })
  host.contribute('system.manifestProblems', async () => {
    const { problems, wrong } = await file.read()
    const details = wrong === undefined ? problems : [wrong]
    const kind = wrong === undefined ? ('invalidEntry' as const) : ('unreadable' as const)
    return [{ path: CARDS_FILE, problems: details.map(detail => ({ kind, detail })) }]
  })
  const ok = { ok: true } as const
  await host.serve(personas, {
    'GET /personas': async (_, { caller }) => ({ personas: await all.list(caller) }),
    'POST /personas': async (card, context) => {
      await all.save(card, context)
      return ok
    },
    'DELETE /personas/{id}': async ({ id }, context) => {
      await all.remove(id, context)
      return ok
    },
    'GET /personas/{id}/kit': async ({ id }, { caller }) => {
      await all.visible(id, caller)
      const skills = await all.skills(id)
      return { prompt: await kits.prompt(id), skills: skills.map(({ name, description }) => ({ name, description })) }
    },
    'POST /personas/{id}/prompt': async ({ id, prompt }) => {
      await all.inKit(id, () => kits.savePrompt(id, prompt))
      await all.published('personas', id)
      return ok
    },
    'GET /personas/{id}/skills/read': async ({ id, name }, { caller }) => {
      await all.visible(id, caller)
      return all.skill(id, name)
    },
    'POST /personas/{id}/skills': async ({ id, name, description, body }) => {
      const { text } = await host.call('skills.compose', { name, description, body })
      await all.inKit(id, () => kits.saveSkill(id, name, text))
      await Promise.all([all.published('personas', id), all.published('skills', id)])
      return ok
    },
    'POST /personas/{id}/skills/remove': async ({ id, name }) => {
      await all.inKit(id, () => kits.removeSkill(id, name))
      await Promise.all([all.published('personas', id), all.published('skills', id)])
      return ok
    },
    'GET /personas/{id}/resolved': ({ id, unattended = false }, { caller }) => all.resolved(id, unattended, caller),
    'personas.forTurn': ({ actsAs }) => all.forTurn(actsAs),
    'personas.kitSkills': async ({ persona }) => ({ skills: await all.kitSkills(persona) }),
    'personas.naming': async () => ({ personas: await all.naming() }),
    'personas.repoint': async ({ from, to }) => {
      await all.repoint(from, to)
      return ok
    },
  })
}
