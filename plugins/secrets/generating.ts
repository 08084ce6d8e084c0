import { randomInt } from 'node:crypto'
import type { GenerateRecipe, RandomRecipe } from './contract.js'
import { sshKeyPair } from './vault/openssh.js'

/** A value nobody has seen, and the public half of a key pair. */
export interface Generated {
  readonly value: string
  readonly publicKey?: string
}

const ALNUM = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const ALPHABETS: { readonly [alphabet in NonNullable<RandomRecipe['alphabet']>]: string } = {
  base64url: `${ALNUM}-_`,
  hex: '0123456789abcdef',
  alnum: ALNUM,
  symbols: `${ALNUM}!#$%&()*+,-./:;<=>?@[]^_{|}~`,
}
const LENGTH = 32
const WORDS = 6
const CONSONANTS = 'bdfghjklmnprstvz'
const VOWELS = 'aiou'

/** Makes a value as a recipe says. */
export const generated = (recipe: GenerateRecipe = { kind: 'random' }): Generated => {
  switch (recipe.kind) {
    case 'random':
      return { value: drawn(ALPHABETS[recipe.alphabet ?? 'base64url'], recipe.length ?? LENGTH) }
    case 'words':
      return { value: Array.from({ length: recipe.words ?? WORDS }, word).join('-') }
    case 'ssh-key': {
      const { privateKey, publicKey } = sshKeyPair(recipe.comment ?? '')
      return { value: privateKey, publicKey }
    }
  }
}

/** Characters of an alphabet, each as likely as any other. */
const drawn = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]!).join('')

/** A word of five letters with 16 bits (D. S. Wilkerson's proquints), which can be said and typed. */
const word = (): string => [CONSONANTS, VOWELS, CONSONANTS, VOWELS, CONSONANTS].map(of => drawn(of, 1)).join('')
