import { createHash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import { RE2JS } from 're2js'
import { PhraseMatcher } from '../../../sdk/node/access/phrase-matcher.js'
import type { DetectorAction, ShieldList, ShieldPattern, ShieldPolicy } from '../contract.js'
import { addressScans } from '../detect/address-scans.js'
import { withoutSeparators, type Candidate, type FormScan } from '../detect/candidate.js'
import { secretScans, wordScans } from '../detect/context-scans.js'
import { actionOf, detectorIds } from '../detect/detector-catalogue.js'
import { nationalScans } from '../detect/national-ids.js'
import { nationalPhones, numberScans } from '../detect/number-scans.js'

/** A pattern of the owner's, which is compared in linear time. */
export interface CompiledPattern {
  readonly pattern: ShieldPattern
  readonly regex: RE2JS
}

/** A policy that is ready to be used. */
export interface CompiledShield {
  readonly policy: ShieldPolicy
  readonly revision: string
  readonly scans: readonly FormScan[]
  readonly lists: PhraseMatcher<ShieldList>
  readonly patterns: readonly CompiledPattern[]
  /** Whether the policy says never to mask this. */
  allows(found: Candidate, value: string): boolean
}

/** What is wrong with a policy: where, what was expected, and what was found. */
export interface ShieldFault {
  readonly path: string
  readonly expected: string
  readonly found: string
}

/** The policy of a sandbox in which nobody has written one. */
export const USUAL_SHIELD: ShieldPolicy = {
  enabled: false,
  providers: {},
  defaultTrust: 'shielded',
  detectors: {},
  countries: [],
  languages: [],
  lists: [],
  patterns: [],
  allow: [],
  binary: 'send',
  onFailure: 'block',
}

/** The word of tokens for texts that read as tokens themselves. */
export const LITERAL = 'LITERAL'
const MOST_NAMED = 1_000
const MOST_NAME = 200

/** A short hash of a policy. */
export const shieldRevision = (policy: ShieldPolicy): string =>
  createHash('sha256').update(JSON.stringify(policy)).digest('base64url').slice(0, 22)

/** Compiles a policy, or says what is wrong with it. */
export const compiledShield = (policy: ShieldPolicy): CompiledShield | ShieldFault => {
  const fault = faultIn(policy)
  if (fault) return fault
  const patterns: CompiledPattern[] = []
  for (const [at, pattern] of policy.patterns.entries()) {
    const regex = regexOf(pattern.regex)
    if (typeof regex === 'string') {
      const expected = `a regular expression in RE2 syntax, without backreferences (${regex})`
      return { path: `policy.patterns[${at}].regex`, expected, found: pattern.regex }
    }
    if (regex.matcher('').find()) {
      const expected = 'a regular expression that does not fit an empty text'
      return { path: `policy.patterns[${at}].regex`, expected, found: pattern.regex }
    }
    patterns.push({ pattern, regex })
  }
  const { countries, languages, lists } = policy
  const all = [
    ...[...addressScans, ...numberScans, ...nationalPhones(countries)],
    ...[...nationalScans(countries), ...wordScans(languages), ...secretScans],
  ]
  const phrases = lists.flatMap(list =>
    list.values.map(text => ({
      ...{ text, id: list, wholeWord: list.wholeWord, caseSensitive: list.caseSensitive },
    })),
  )
  return {
    policy,
    revision: shieldRevision(policy),
    scans: all.filter(({ detector }) => actionOf(policy, detector) !== 'off'),
    lists: new PhraseMatcher(actionOf(policy, 'list') === 'off' ? [] : phrases),
    patterns: actionOf(policy, 'pattern') === 'off' ? [] : patterns.filter(({ pattern }) => pattern.action !== 'off'),
    allows: allowing(policy.allow),
  }
}

/** What a policy does with a finding. */
export const actionFor = ({ policy, patterns }: CompiledShield, { detector, source }: Candidate): DetectorAction => {
  if (detector !== 'pattern') return actionOf(policy, detector)
  return patterns.find(({ pattern }) => pattern.id === source)?.pattern.action ?? 'mask'
}

const faultIn = ({ detectors, lists, patterns, providers }: ShieldPolicy): ShieldFault | undefined => {
  const unknown = Object.keys(detectors).find(id => !(detectorIds as readonly string[]).includes(id))
  if (unknown !== undefined)
    return {
      path: `policy.detectors.${unknown.slice(0, 60)}`,
      expected: `one of ${detectorIds.join(', ')}`,
      found: unknown,
    }
  const names = Object.keys(providers)
  if (names.length > MOST_NAMED)
    return { path: 'policy.providers', expected: `at most ${MOST_NAMED} providers`, found: String(names.length) }
  const long = names.find(name => name === '' || name.length > MOST_NAME)
  if (long !== undefined)
    return { path: 'policy.providers', expected: `names of 1 to ${MOST_NAME} characters`, found: long.slice(0, 60) }
  for (const [part, entries] of Object.entries({ lists, patterns })) {
    const ids = new Set<string>()
    for (const [at, { id, kind }] of entries.entries()) {
      if (ids.has(id))
        return { path: `policy.${part}[${at}].id`, expected: 'an id of its own', found: `${id} a second time` }
      ids.add(id)
      if (kind === LITERAL)
        return { path: `policy.${part}[${at}].kind`, expected: `another word than ${LITERAL}`, found: kind }
    }
  }
  return undefined
}

/** A regular expression that is compared in linear time, or why there is none. */
const regexOf = (source: string): RE2JS | string => {
  try {
    return RE2JS.compile(source)
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 200) : 'it does not parse'
  }
}

const plain = (value: string): string => value.trim().toLowerCase()

const allowing = (allow: readonly string[]): CompiledShield['allows'] => {
  const values = new Set<string>()
  const domains: string[] = []
  const networks = new BlockList()
  for (const entry of allow) {
    const [, address, bits] = /^([\da-f.:]+)\/(\d{1,3})$/i.exec(entry) ?? []
    const family = isIP(address ?? '')
    if (entry.startsWith('@')) domains.push(entry.toLowerCase())
    else if (family && Number(bits) <= (family === 4 ? 32 : 128))
      networks.addSubnet(address!, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
    else {
      values.add(plain(entry))
      values.add(withoutSeparators(entry))
    }
  }
  return ({ detector, normal }, value) => {
    if (values.has(plain(value)) || values.has(normal)) return true
    if (detector === 'email') return domains.some(domain => normal.endsWith(domain))
    const family = detector === 'ip' ? isIP(value) : 0
    return family > 0 && networks.check(value, family === 4 ? 'ipv4' : 'ipv6')
  }
}
