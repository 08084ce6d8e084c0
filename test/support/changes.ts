import { watch } from 'node:fs'

/** Resolves once a condition holds; checks it at every change in a folder. */
export const onceIn = (folder: string, holds: () => boolean): Promise<void> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      if (!holds()) return
      watcher.close()
      resolve()
    }
    const watcher = watch(folder, look).on('error', reject)
    look()
  })
