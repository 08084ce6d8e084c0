/** What is said of a server that ends a connection before an answer, or switches its protocol. */
export const CLOSED = 'it closed the connection without an answer'

/** What codes of failed connections mean, in words. */
export const SENTENCES: { readonly [code: string]: string } = {
  ENOTFOUND: 'no such name',
  EAI_AGAIN: 'names cannot be looked up now',
  ECONNREFUSED: 'nothing is listening there',
  ECONNRESET: 'it closed the connection',
  ETIMEDOUT: 'it does not answer',
  EHOSTUNREACH: 'there is no way to it',
  ENETUNREACH: 'there is no way to it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'nobody trusted vouches for its certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'nobody trusted vouches for its certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'nobody trusted vouches for its certificate',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'nobody trusted vouches for its certificate',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is that of another host',
  HPE_HEADER_OVERFLOW: 'its headers are over 65536 bytes',
}
