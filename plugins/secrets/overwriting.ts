import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'

/** Opens a file whose bytes are to be destroyed, unless it is found under another name too, or nothing is there. */
export const onlyName = async (path: string): Promise<FileHandle | undefined> => {
  const handle = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => undefined,
  )
  const found = await handle?.stat()
  if (found?.isFile() && found.nlink === 1) return handle
  await handle?.close()
  return undefined
}

/** Writes zeros over the bytes of a file, so that they are not found on the disk once its name is gone. */
export const zero = async (handle: FileHandle): Promise<void> => {
  const { size } = await handle.stat()
  await handle.write(Buffer.alloc(size), 0, size, 0)
  await handle.sync()
}
