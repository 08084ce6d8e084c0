type Tar = typeof import('tar-stream')

/** The library that reads and writes archives, loaded when one is; bundled, it has all it offers as its default. */
export const tar = async (): Promise<Tar> => {
  const loaded: Tar & { readonly default?: Tar } = await import('tar-stream')
  return loaded.default ?? loaded
}
