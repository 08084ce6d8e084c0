/** A power of an extension, which needs approval: a key for comparison, and a sentence for people. */
export interface ExtensionPower {
  key: string
  text: string
}
