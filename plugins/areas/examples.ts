import type { Examples } from '../../sdk/contract.js'
import type { Area, Areas } from './contract.js'

const FRONTEND: Area = {
  id: 'frontend',
  label: 'Frontend',
  folders: ['web'],
  access: 'work',
  createdAt: 1795384994499,
  updatedAt: 1795384994499,
  updatedBy: 'ada@example.org',
  holders: [{ email: 'ben@example.org', role: 'collaborator' }],
}

/** One use of each call. */
export const examples = (): Examples<Areas> => ({
  'GET /areas': { output: { areas: [FRONTEND], limited: false, mine: [], folders: [{ path: '.', access: 'work' }] } },
  'GET /areas/reach': {
    input: { path: 'web/cart.ts' },
    output: {
      path: 'web/cart.ts',
      people: [{ email: 'ben@example.org', role: 'collaborator', access: 'work', via: ['frontend'] }],
    },
  },
  'GET /areas/{id}': {
    input: { id: 'frontend' },
    output: {
      ...FRONTEND,
      folders: [{ path: 'web', exists: true, files: 41 }],
      repos: [{ repo: 'root', covered: 'part' }],
      conversations: 2,
    },
  },
  'POST /areas': {
    input: { id: 'frontend', label: 'Frontend', folders: ['web'], access: 'work' },
    output: { area: FRONTEND, created: true },
  },
  'POST /areas/{id}/holders': {
    input: { id: 'frontend', add: ['ben@example.org'] },
    output: { holders: [{ email: 'ben@example.org', role: 'collaborator' }] },
  },
  'DELETE /areas/{id}': { input: { id: 'frontend' }, output: { ok: true } },
})
