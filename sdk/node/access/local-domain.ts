/** The domain of the e-mail addresses that this sandbox gives to people who signed in without one of their own. */
export const LOCAL_DOMAIN = 'sandbox.local'
