/** The parameters in the fragment of a link to the page. */
export type LinkCode =
  | { readonly kind: 'login'; readonly login: string; readonly conversation?: string }
  | { readonly kind: 'invite'; readonly invite: string }
  | { readonly kind: 'claim'; readonly claim: string }
  | { readonly kind: 'provider'; readonly state: string; readonly code?: string; readonly idToken?: string }
  | { readonly kind: 'refused'; readonly state: string; readonly message: string }

/** The code in a fragment; undefined for the routes of the page, which begin with `#/`. */
export const linkCodeOf = (hash: string): LinkCode | undefined => {
  if (!hash.startsWith('#') || hash.startsWith('#/')) return undefined
  const fields = new URLSearchParams(hash.slice(1))
  const conversation = fields.get('conversation')
  const [login, invite, claim] = [fields.get('login'), fields.get('invite'), fields.get('claim')]
  if (login) return { kind: 'login', login, ...(conversation && { conversation }) }
  if (invite) return { kind: 'invite', invite }
  if (claim) return { kind: 'claim', claim }
  const state = fields.get('state')
  if (!state) return undefined
  const error = fields.get('error')
  if (error) return { kind: 'refused', state, message: fields.get('error_description') ?? error }
  const [code, idToken] = [fields.get('code'), fields.get('id_token')]
  if (idToken) return { kind: 'provider', state, idToken }
  return code ? { kind: 'provider', state, code } : undefined
}
