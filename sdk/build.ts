/** The file of a built program that holds its `BuildInfo`. */
export const BUILD_FILE = 'openapi/build.json'

/** A fingerprint of each call. */
export type Shapes = { readonly [call: string]: string }

/** What is computed of a program when it is built, because it takes a tenth of a second. */
export interface BuildInfo {
  /** Changes with the program. */
  readonly build: string
  /** Of each group, by the path of its program. */
  readonly shapes: { readonly [entry: string]: Shapes }
}
