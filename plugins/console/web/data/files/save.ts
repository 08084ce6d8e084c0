/** Saves bytes as a file of the person's machine. */
export const saveBytes = (name: string, type: string, data: string | Uint8Array): void => {
  const url = URL.createObjectURL(new Blob([data as BlobPart], { type }))
  saveFrom(url, name)
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

/** Downloads an address of this sandbox. */
export const saveFrom = (url: string, name: string): void => {
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
}
