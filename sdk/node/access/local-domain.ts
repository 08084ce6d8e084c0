/** The domain of generated e-mail addresses, for people who signed in without one. */
export const LOCAL_DOMAIN = 'sandbox.local'
