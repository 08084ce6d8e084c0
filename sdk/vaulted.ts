/** What stands in a request and in a file in place of a secret that is stored: it stays as it is. */
export const VAULTED = '__vaulted__'
