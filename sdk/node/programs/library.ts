/** The names of a library of the older module format (CommonJS), loaded with `import()`: bundled, all are its default. */
export const namesOf = <T extends object>(loaded: T & { readonly default?: unknown }): T =>
  (loaded.default as T | undefined) ?? loaded
