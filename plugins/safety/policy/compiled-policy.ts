import { createHash } from 'node:crypto'
import { RE2JS } from 're2js'
import type { CommandClass } from '../../settings/contract.js'
import type { SafetyPolicy, SafetyRule, SafetySubject } from '../contract.js'
import { globPattern } from '../../../sdk/node/files/glob-pattern.js'

/** The facts that a rule is compared with. */
export interface RuleFacts {
  readonly subject: SafetySubject
  readonly classes: readonly CommandClass[]
  readonly unattended: boolean
  readonly outside: boolean
  readonly persona?: string | undefined
  readonly repo?: string | undefined
}

/** A rule that is ready to be compared. */
export interface CompiledRule {
  readonly rule: SafetyRule
  matches(facts: RuleFacts): boolean
}

/** A policy that is ready to decide. */
export interface CompiledPolicy {
  readonly policy: SafetyPolicy
  readonly revision: string
  readonly rules: readonly CompiledRule[]
}

/** What is wrong with a policy: where, what was expected, and what was found. */
export interface PolicyFault {
  readonly path: string
  readonly expected: string
  readonly found: string
}

/** The policy of a sandbox in which nobody has written one. */
export const USUAL_POLICY: SafetyPolicy = {
  prose: '',
  judge: {
    mode: 'off',
    ask: ['git.destructive', 'files.destructive', 'secrets.access', 'package.publish', 'infra.destructive'],
    actions: true,
    models: [],
    timeoutMs: 15_000,
    onFailure: 'hold',
  },
  rules: [],
  outsideFloor: true,
}

const BY_GLOB: readonly SafetySubject['kind'][] = ['path', 'host', 'tool']

/** A short hash of a value. */
export const policyDigest = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('base64url').slice(0, 22)

/** Compiles a policy, or says what is wrong with its rules. */
export const compiledPolicy = (policy: SafetyPolicy): CompiledPolicy | PolicyFault => {
  const ids = new Set<string>()
  const rules: CompiledRule[] = []
  for (const [at, rule] of policy.rules.entries()) {
    const path = `policy.rules[${at}]`
    if (ids.has(rule.id)) return { path: `${path}.id`, expected: 'an id of its own', found: `${rule.id} a second time` }
    ids.add(rule.id)
    const compiled = compiledRule(rule, path)
    if ('expected' in compiled) return compiled
    rules.push(compiled)
  }
  return { policy, revision: policyDigest(policy), rules }
}

/** Compiles a rule, or says what is wrong with it. */
export const compiledRule = (rule: SafetyRule, path: string): CompiledRule | PolicyFault => {
  const { match, target, when = {} } = rule
  if (Object.values(match).every(part => part === undefined))
    return { path: `${path}.match`, expected: 'at least one of class, glob, regex, action', found: 'none' }
  if (match.glob !== undefined && !BY_GLOB.includes(target))
    return {
      path: `${path}.match.glob`,
      expected: 'no glob, because the target has none to compare: use regex',
      found: target,
    }
  if (match.action !== undefined && target !== 'action')
    return { path: `${path}.match.action`, expected: 'no action, unless target is action', found: `target ${target}` }
  const glob = match.glob === undefined ? undefined : globPattern(match.glob)
  const pattern = match.glob === undefined ? undefined : glob && regexOf(glob)
  if (match.glob !== undefined && (pattern === undefined || typeof pattern === 'string'))
    return { path: `${path}.match.glob`, expected: 'a glob whose brackets are closed', found: match.glob }
  const regex = match.regex === undefined ? undefined : regexOf(match.regex)
  if (typeof regex === 'string')
    return {
      path: `${path}.match.regex`,
      expected: `a regular expression in RE2 syntax, without backreferences (${regex})`,
      found: match.regex!,
    }
  const fits = (value: boolean | undefined, found: boolean): boolean => value === undefined || value === found
  return {
    rule,
    matches: ({ subject, classes, unattended, outside, persona, repo }) =>
      rule.enabled !== false
      && target === subject.kind
      && fits(when.unattended, unattended)
      && fits(when.outside, outside)
      && (when.persona === undefined || when.persona === persona)
      && (when.repo === undefined || when.repo === (subject.repo ?? repo))
      && (match.class === undefined || classes.includes(match.class))
      && (match.action === undefined || isAction(match.action, subject))
      && (pattern === undefined || (typeof pattern !== 'string' && pattern.matcher(subject.text).find()))
      && (regex === undefined || regex.matcher(subject.text).find()),
  }
}

/** Whether an action is what a key names: `<provider>.<type>` or `<provider>.*`. */
export const isAction = (key: string, { provider = '', type = '' }: SafetySubject): boolean =>
  key === `${provider}.${type}` || key === `${provider}.*`

/** A regular expression that is compared in linear time, or why there is none. */
const regexOf = (source: string): RE2JS | string => {
  try {
    return RE2JS.compile(source, RE2JS.DOTALL)
  } catch (error) {
    return error instanceof Error ? error.message.slice(0, 200) : 'it does not parse'
  }
}
