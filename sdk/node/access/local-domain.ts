/** The domain of generated e-mail addresses, for people who signed in without one. */
export const LOCAL_DOMAIN = 'sandbox.local'

/** The e-mail of the machine's own user while the sandbox has no owner. */
export const LOCAL_OWNER = `owner@${LOCAL_DOMAIN}`
