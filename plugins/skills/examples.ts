import type { Examples } from '../../sdk/contract.js'
import type { SkillsCalls } from './contract.js'

const SKILL = { name: 'release', description: 'Use it to make a release.', body: 'Run the tests first.\n' }

/** One use of each call. */
export const examples = (): Examples<SkillsCalls> => ({
  'GET /skills': {
    output: [
      {
        id: 'release',
        name: 'release',
        description: SKILL.description,
        origin: 'own',
        enabled: true,
        switchable: true,
        editable: true,
        removable: true,
        tokens: 6,
        files: 0,
      },
    ],
  },
  'POST /skills': { input: SKILL, output: { ok: true } },
  'GET /skills/read': { input: { id: 'release' }, output: { id: 'release', ...SKILL, files: [] } },
  'POST /skills/remove': { input: { name: 'release' }, output: { ok: true } },
  'POST /skills/import': {
    input: { from: { kind: 'git', url: 'https://example.org/skills.git', ref: '0'.repeat(40), path: 'release' } },
    output: { imported: [{ name: 'release', files: 1, size: 812 }], skipped: [] },
  },
  'POST /skills/enabled': { input: { id: 'subagents', enabled: true }, output: { ok: true } },
})
