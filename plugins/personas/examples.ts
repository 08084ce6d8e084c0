import type { Examples } from '../../sdk/contract.js'
import type { PersonaCard, PersonasCalls } from './contract.js'

const CARD: PersonaCard = {
  id: 'reviewer',
  label: 'Reviewer',
  capabilities: ['tracker'],
  brief: 'Reads changes and says what is wrong with them.',
  powers: { files: 'read', shell: false, connectors: [] },
  workspace: { folders: ['src'] },
  systemPromptMode: 'custom',
}
const SKILL = { name: 'review', description: 'Use it for a review of a change.', body: 'Read the change first.\n' }

/** One use of each call. */
export const examples = (): Examples<PersonasCalls> => ({
  'GET /personas': { output: { personas: [{ ...CARD, connected: ['tracker'] }] } },
  'POST /personas': { input: CARD, output: { ok: true } },
  'DELETE /personas/{id}': { input: { id: 'reviewer' }, output: { ok: true } },
  'GET /personas/{id}/kit': {
    input: { id: 'reviewer' },
    output: { prompt: 'You review changes.', skills: [{ name: SKILL.name, description: SKILL.description }] },
  },
  'POST /personas/{id}/prompt': { input: { id: 'reviewer', prompt: 'You review changes.' }, output: { ok: true } },
  'GET /personas/{id}/skills/read': { input: { id: 'reviewer', name: 'review' }, output: SKILL },
  'POST /personas/{id}/skills': { input: { id: 'reviewer', ...SKILL }, output: { ok: true } },
  'POST /personas/{id}/skills/remove': { input: { id: 'reviewer', name: 'review' }, output: { ok: true } },
  'GET /personas/{id}/resolved': {
    input: { id: 'reviewer' },
    output: {
      id: 'reviewer',
      label: 'Reviewer',
      powers: {
        files: 'read',
        shell: false,
        code: true,
        web: true,
        browser: true,
        delegate: true,
        sandbox: true,
        connectors: [],
        devices: [],
        mcp: ['tracker'],
        extensions: [],
      },
      accounts: [{ id: 'tracker', kind: 'mcp', connected: true }],
      tools: ['Read', 'List', 'Code', 'Fetch', 'Delegate', 'Join', 'Todo', 'Ask', 'Plan', 'Skill'],
      withheld: [
        { tool: 'Write', by: 'powers.files' },
        { tool: 'Shell', by: 'powers.shell' },
      ],
      skills: [{ name: SKILL.name, description: SKILL.description, origin: 'persona' }],
      prompt: { mode: 'custom', from: 'persona', chars: 19 },
      notes: ['context', 'skills'],
      workspace: { startIn: '.', folders: ['src'], missing: [] },
      usedBy: [{ kind: 'conversation', id: 'c-1', label: 'Review the parser' }],
      problems: [],
    },
  },
})
