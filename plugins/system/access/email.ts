import { LOCAL_DOMAIN } from '../../../sdk/node/access/local-domain.js'

const PLAIN = /^[a-z0-9.!#$%&*+/=?^_{|}~-]{1,64}@[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})*$/

/** An e-mail as people are named by it, in lower case; undefined where it is not of the plain form. */
export const plainEmail = (text: string): string | undefined => {
  const email = text.toLowerCase()
  return email.length <= 254 && PLAIN.test(email) ? email : undefined
}

/** Whether an e-mail is one the sandbox gives out itself. */
export const isLocalEmail = (email: string): boolean =>
  email.endsWith(`@${LOCAL_DOMAIN}`) || email.endsWith(`.${LOCAL_DOMAIN}`)
