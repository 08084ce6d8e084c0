import { createTwoFilesPatch } from 'diff'

const MOST_BYTES = 512 * 1024
const CONTEXT = 3
const LIMIT_MS = 5_000
const CUT = '\\ The rest is left out: the difference is larger than 512 KiB\n'

/** All of one text in place of the other, for texts too different to be compared in time. */
const replaced = (before: string, after: string): string => {
  const lines = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))
  const [gone, come] = [lines(before), lines(after)]
  const range = (count: number) => (count === 0 ? '0,0' : `1,${count}`)
  const rows = [...gone.map(line => `-${line}`), ...come.map(line => `+${line}`)]
  return `@@ -${range(gone.length)} +${range(come.length)} @@\n${rows.join('\n')}\n`
}

/** At most 512 KiB of a difference, in whole lines. */
const cut = (text: string): string => {
  const bytes = Buffer.from(text)
  if (bytes.length <= MOST_BYTES) return text
  const end = bytes.lastIndexOf(10, MOST_BYTES - CUT.length - 1)
  return bytes.subarray(0, end + 1).toString() + CUT
}

/** How two texts differ, as a unified diff; a comparison that takes long lets others work in between. */
export const unifiedDiff = async (
  names: { readonly before: string; readonly after: string },
  before: string,
  after: string,
): Promise<string> => {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const [one, other] = [before, after].map(text => (text === '' ? '' : `${text}\n`)) as [string, string]
  createTwoFilesPatch(`a/${names.before}`, `b/${names.after}`, one, other, undefined, undefined, {
    context: CONTEXT,
    timeout: LIMIT_MS,
    callback: (patch: string | undefined) => resolve(patch),
  })
  const found = await promise
  const header = `--- a/${names.before}\n+++ b/${names.after}\n`
  return cut(found === undefined ? header + replaced(one, other) : found.slice(found.indexOf('--- ')))
}
