import type { CliTable } from '../../sdk/cli-table.js'
import type { SafetyCalls } from './contract.js'

/** The verbs of the group. */
export const cli: CliTable<SafetyCalls> = {
  bare: 'get',
  verbs: {
    get: {
      call: 'GET /safety',
      columns: {
        policy: 'policy.prose',
        judge: 'policy.judge.mode',
        'the judge can run': 'judge.available',
        why: 'judge.reason',
        revision: 'revision',
      },
      lists: {
        rules: { rows: 'policy.rules', columns: { rule: 'id', says: 'verdict', about: 'target', label: 'label' } },
        classes: { rows: 'classes', columns: { class: 'class', setting: 'setting', 'what it is': 'label' } },
      },
    },
    set: { call: 'POST /safety', args: [], done: 'replaced the policy', examples: ['policy=@policy.json'] },
    test: {
      call: 'POST /safety/test',
      args: [],
      columns: { verdict: 'decision.verdict', by: 'decision.by', why: 'decision.reason', classes: 'decision.classes' },
      lists: {
        steps: { rows: 'steps', columns: { step: 'step', matched: 'matched', detail: { field: 'detail', most: 100 } } },
      },
      examples: ['subject:=\'{"kind":"command","text":"git push"}\''],
    },
    verdicts: {
      call: 'GET /safety/verdicts',
      args: [],
      rows: 'verdicts',
      columns: {
        id: 'id',
        when: 'at',
        verdict: 'verdict',
        by: 'by',
        conversation: 'conversationId',
        what: ['subject.text', 'subject.kind'],
      },
      none: 'nothing was held or denied',
    },
    review: {
      call: 'POST /safety/verdicts/{id}/review',
      args: ['id', 'correct'],
      ids: { id: 'verdicts' },
      done: '{id} was {correct?right:wrong}',
      examples: ['v-1 yes'],
    },
    replay: {
      call: 'POST /safety/replay',
      args: [],
      columns: { replayed: 'replayed', from: 'from', 'decided otherwise': 'changes.length' },
      lists: {
        changes: {
          rows: 'changes',
          columns: { when: 'at', was: 'was', now: 'now', what: ['subject.text', 'subject.kind'], why: 'reason' },
        },
      },
    },
  },
}
