import type { Examples } from '../../sdk/contract.js'
import type { DiffsCalls } from './contract.js'

const HASH = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
const SIDE = { size: 8123, deriver: 'officeparser docx', notes: ['1 image'], truncated: false }

/** One use of each call. */
export const examples = (): Examples<DiffsCalls> => ({
  'GET /diff/rendered': {
    input: { source: 'commit', repo: 'root', sha: '1a2b3c4', path: 'docs/offer.docx' },
    output: {
      path: 'docs/offer.docx',
      kind: 'document',
      before: { hash: HASH, markdown: '# Offer\n\nTen days.', ...SIDE },
      after: { hash: HASH.replace('9f', 'a0'), markdown: '# Offer\n\nNine days.', ...SIDE },
      same: false,
      unified: '--- a/docs/offer.docx\n+++ b/docs/offer.docx\n@@ -1,3 +1,3 @@\n # Offer\n \n-Ten days.\n+Nine days.\n',
    },
  },
  'GET /diff/raw': {
    input: { source: 'working', repo: 'root', side: 'unstaged', path: 'logo.png', which: 'before' },
    output: '',
  },
  'GET /diff/documents': {
    input: { source: 'working', repo: 'root', side: 'unstaged' },
    output: {
      documents: [
        { path: 'docs/offer.docx', kind: 'document', before: true, after: true, renderable: true, cached: false },
      ],
      hasMore: false,
      renderers: [{ format: 'docx', available: true }],
    },
  },
})
