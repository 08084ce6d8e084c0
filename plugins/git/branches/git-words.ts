/** Accepts every exit code. */
export const anyExit: { readonly ok: readonly number[] } = { ok: Array.from({ length: 256 }, (_, code) => code) }

/** The files that git would have overwritten, as it lists them. */
export const overwrittenIn = (stderr: string): string[] => {
  if (!/would be overwritten|would be removed|not updating the following directories/i.test(stderr)) return []
  return stderr.split('\n').flatMap(line => (line.startsWith('\t') ? [line.slice(1)] : []))
}
