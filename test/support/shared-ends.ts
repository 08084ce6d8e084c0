import type { Test } from 'tap'

/** What the files of this process share, in the order it was begun; absent in the process of a single file. */
let ends: (() => unknown)[] | undefined

/** Lets what `endShared` gets outlast its file: several files run in this process. */
export const shareAmongFiles = (t: Pick<Test, 'teardown'>): void => {
  const begun: (() => unknown)[] = []
  ends = begun
  t.teardown(async () => {
    for (const end of begun.reverse()) await end()
  })
}

/** Whether several files run in this process. */
export const isShared = (): boolean => ends !== undefined

/** Ends something after the last file of this process; a single file ends with its test. */
export const endShared = (t: Pick<Test, 'teardown'>, end: () => unknown): void => {
  if (ends) ends.push(end)
  else t.teardown(end)
}
