import { LOCAL_DOMAIN } from '../../../sdk/node/access/local-domain.js'

const PLAIN = /^[a-z0-9.!#$%&*+/=?^_{|}~-]{1,64}@[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/

/** The e-mail in lower case; undefined if it is not of the form local@domain. */
export const plainEmail = (text: string): string | undefined => {
  const email = text.toLowerCase()
  return email.length <= 254 && PLAIN.test(email) ? email : undefined
}

/** Whether the sandbox itself issued this e-mail. */
export const isLocalEmail = (email: string): boolean =>
  email.endsWith(`@${LOCAL_DOMAIN}`) || email.endsWith(`.${LOCAL_DOMAIN}`)
