// Masking of 50 secrets against other work on the same texts: `node dist/test/bench/mask.js`. Only the ratios count.
import { createHash } from 'node:crypto'
import { Masker } from '../../sdk/node/access/masker.js'
import { inTurns, median, print, quick, ratio, timed, verdict, x } from './measure.js'

const ROUNDS = quick ? 1 : 9
const SECRETS = 50
const MIB = quick ? 2 : 32
const FRAMES = quick ? 2_000 : 40_000

const digest = (of: string): string => createHash('sha256').update(of).digest('base64url')
const secrets = Array.from({ length: SECRETS }, (_, at) => ({
  name: `KEY_${at}`,
  value: digest(`secret ${at}`).slice(0, 8 + (at % 36)),
}))
const WORDS = [
  'export',
  'const',
  'return',
  'sandbox/kernel/',
  'the',
  'value',
  '"name":',
  '  at Object.<anonymous>',
  '=>',
]

/** Typical output of programs: lines of words and of digests, and rarely a secret. */
const output = (bytes: number): string => {
  const lines: string[] = []
  for (let size = 0, at = 0; size < bytes; at++) {
    const words = Array.from({ length: 9 }, (_, word) => WORDS[(at * 7 + word * word) % WORDS.length])
    if (at % 5 === 0) words.push(digest(String(at)))
    if (at % 1000 === 0) words.push(secrets[at % SECRETS]!.value)
    const line = words.join(' ')
    size += line.length + 1
    lines.push(line)
  }
  return lines.join('\n')
}

const masker = new Masker(secrets)
const text = output(1024 * 1024)
const each = secrets.map(({ value }) => value)
const deltas = Array.from({ length: FRAMES }, (_, seq) => ({
  kind: 'delta',
  seq,
  messageId: 'msg_01HZX6Q3T1W8J5K9',
  text: text.slice((seq * 37) % 900_000, ((seq * 37) % 900_000) + 60),
}))

let seen = 0
const times = (work: (text: string) => unknown) => () =>
  timed(() => {
    for (let n = 0; n < MIB; n++) if (work(text)) seen++
  })

const whole = await inTurns(
  {
    json: times(JSON.stringify),
    find: times(all => each.filter(value => all.includes(value)).length),
    mask: times(all => masker.mask(all)),
  },
  ROUNDS,
)
const speed = (took: readonly number[]): string => `${((MIB / median(took)) * 1000).toFixed(0)} MiB/s`
print('mask: JSON.stringify of 1 MiB of output (baseline)', speed(whole.json))
print(`mask: look for each of ${SECRETS} raw values (baseline)`, speed(whole.find))
print(`mask: every form of ${SECRETS} secrets`, speed(whole.mask), x(ratio(whole.json, whole.mask)))
verdict(`mask: all forms of ${SECRETS} secrets, speed to JSON.stringify`, ratio(whole.json, whole.mask), {
  least: 0.5,
  as: x,
})
verdict(`mask: all forms of ${SECRETS} secrets, speed to the raw values one by one`, ratio(whole.find, whole.mask), {
  least: 1,
  as: x,
})

const frames = await inTurns(
  {
    json: () =>
      timed(() => {
        for (const delta of deltas) seen += JSON.stringify(delta).length
      }),
    mask: () =>
      timed(() => {
        for (const delta of deltas) seen += masker.maskJson(delta).seq
      }),
    stream: () =>
      timed(() => {
        const stream = masker.stream()
        for (const delta of deltas) seen += stream.push(delta.text).length
      }),
  },
  ROUNDS,
)
const rate = (took: readonly number[]): string => `${(FRAMES / median(took)).toFixed(0)}k/s`
print('mask: JSON.stringify of a delta (baseline)', rate(frames.json))
print('mask: a delta as JSON', rate(frames.mask), x(ratio(frames.json, frames.mask)))
print('mask: a delta as a piece of a stream', rate(frames.stream), x(ratio(frames.json, frames.stream)))
// The share of one processor for 2,000 deltas per second.
const part = ((median(frames.mask) + median(frames.stream)) / FRAMES) * 2
verdict('mask: 2,000 deltas a second, masked as JSON and as a stream, of one processor', part * 100, {
  most: 2,
  as: percent => `${percent.toFixed(2)} %`,
})
if (seen === 0) throw new Error('nothing was masked')
