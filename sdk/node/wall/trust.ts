import { systemBundle } from '../network/authority.js'
import type { Env } from '../programs/list-env.js'
import type { EnteredNetwork, Mount } from './spec.js'

type Trusted = Pick<EnteredNetwork, 'authorities'> | undefined

/** Where the authorities are on a system that has no file of its own for them. */
const ELSEWHERE = '/run/sandbox/authorities.pem'
/** What tells programs and libraries whom they trust. */
const VARIABLES = ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO', 'CURL_CA_BUNDLE']

const place = (): string => systemBundle() ?? ELSEWHERE

/** The authorities of a network in the place of those of the system. */
export const trustMounts = (network: Trusted): Mount[] =>
  network?.authorities === undefined ? [] : [['show', network.authorities, place(), 'certificate authorities']]

/** The variables that name the authorities of a network. */
export const trustEnv = (network: Trusted): Env =>
  network?.authorities === undefined ? {} : Object.fromEntries(VARIABLES.map(name => [name, place()]))
