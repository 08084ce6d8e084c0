/** The names of a CommonJS library that was loaded with `import()`: bundled, all of them are in its default. */
export const namesOf = <T extends object>(loaded: T & { readonly default?: unknown }): T =>
  (loaded.default as T | undefined) ?? loaded
