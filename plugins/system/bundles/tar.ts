type Tar = typeof import('tar-stream')

/** Loads the tar library when it is first used; the bundled one exports everything as its default. */
export const tar = async (): Promise<Tar> => {
  const loaded: Tar & { readonly default?: Tar } = await import('tar-stream')
  return loaded.default ?? loaded
}
