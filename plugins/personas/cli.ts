import type { CliTable } from '../../sdk/cli-table.js'
import type { PersonasCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<PersonasCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /personas',
      rows: 'personas',
      columns: {
        id: 'id',
        label: 'label',
        files: 'powers.files',
        connections: 'capabilities',
        'what it does': 'brief',
      },
      none: 'no personas; {sandbox} personas save ID makes one',
    },
    resolved: {
      call: 'GET /personas/{id}/resolved',
      args: ['id'],
      columns: {
        label: 'label',
        tools: 'tools',
        without: 'withheld.tool',
        accounts: 'accounts.id',
        skills: 'skills.name',
        prompt: 'prompt.from',
        notes: 'notes',
      },
    },
    kit: {
      call: 'GET /personas/{id}/kit',
      columns: { prompt: 'prompt' },
      lists: { skills: { rows: 'skills', columns: { skill: 'name', 'when it is used': 'description' } } },
    },
    save: {
      call: 'POST /personas',
      args: ['id', 'label'],
      fill: () => ({ capabilities: [] }),
      done: 'saved {id}',
      examples: ['reviewer Reviewer --brief "Reads changes."'],
    },
    remove: { call: 'DELETE /personas/{id}', done: 'removed {id}' },
    'save-prompt': {
      call: 'POST /personas/{id}/prompt',
      args: ['id'],
      done: 'saved the prompt of {id}',
      examples: ['reviewer prompt=@prompt.md'],
    },
    'save-skill': {
      call: 'POST /personas/{id}/skills',
      args: ['id', 'name'],
      done: 'saved the skill {name} of {id}',
      examples: ['reviewer review --description "Use it for a review." body=@skill.md'],
    },
    'read-skill': {
      call: 'GET /personas/{id}/skills/read',
      args: ['id', 'name'],
      columns: { name: 'name', 'when it is used': 'description', text: 'body' },
    },
    'remove-skill': {
      call: 'POST /personas/{id}/skills/remove',
      args: ['id', 'name'],
      done: 'removed the skill {name} of {id}',
    },
  },
}
