import type { CommandClass } from '../../settings/contract.js'
import type { SafetySubject } from '../contract.js'
import { programClasses } from './programs.js'
import { scriptFacts } from './script.js'
import { parsedCommands, type ParsedCommand } from './shell.js'
import { afterOptions, hasOption, isDestructiveSql, isLocalHost, isSecretPath, operands, programOf } from './words.js'

/** Every class, in the order in which they are shown. */
export const CLASSES: readonly CommandClass[] = [
  'git.destructive',
  'git.publish',
  'files.destructive',
  'secrets.access',
  'package.publish',
  'network.outbound',
  'database.destructive',
  'infra.destructive',
  'system.privileged',
]

const REFERENCE = /\{\{secret:[^}]*\}\}/
const MOST_DEPTH = 10
/** Words that are read in all, those of commands in commands again. */
const MOST_WORK = 60_000

const SHELLS = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh', 'ash', 'fish', 'rbash', 'busybox-sh', 'pwsh', 'powershell'])
const SCRIPTS = new Set('node nodejs deno bun python python2 python3 perl ruby php tsx ts-node lua'.split(' '))
const INLINE = new Set(['-c', '-e', '-r', '-p', '-pe', '-E', '--eval', '--print', '-Command', 'eval'])
const SQL = new Set(
  'psql mysql mariadb sqlite3 sqlite duckdb sqlcmd mongosh mongo redis-cli clickhouse-client cockroach'.split(' '),
)

/** Programs that run the command after their options; the options whose value is the next word. */
const WRAPPERS: { readonly [program: string]: readonly string[] } = {
  sudo: ['-u', '-g', '-h', '-p', '-C', '-r', '-t', '-T', '-U', '-D', '-R', '--user', '--group', '--host', '--chdir'],
  doas: ['-u', '-C'],
  env: ['-u', '-C', '--unset', '--chdir'],
  xargs: [
    '-n',
    '-I',
    '-P',
    '-d',
    '-L',
    '-s',
    '-E',
    '-a',
    '-i',
    '--max-args',
    '--max-procs',
    '--delimiter',
    '--arg-file',
  ],
  parallel: ['-j', '--jobs', '-n', '-N'],
  nohup: [],
  time: ['-f', '-o'],
  nice: ['-n', '--adjustment'],
  ionice: ['-c', '-n', '-p'],
  timeout: ['-s', '-k', '--signal', '--kill-after'],
  setsid: [],
  stdbuf: ['-i', '-o', '-e'],
  command: [],
  builtin: [],
  exec: ['-a'],
  chroot: [],
  unshare: [],
  nsenter: ['-t'],
  caffeinate: [],
  watch: ['-n', '--interval'],
  strace: ['-e', '-o', '-p'],
  busybox: [],
  toybox: [],
  npx: ['-p', '--package'],
  bunx: [],
  pnpx: [],
  uvx: ['--from'],
  flock: ['-w', '-E'],
  chronic: [],
  unbuffer: [],
  firejail: [],
  setpriv: [],
  runuser: ['-u'],
  pkexec: ['--user'],
  taskset: [],
  chrt: [],
  doppler: [],
}
/** Programs of which a word before `--` or the verb leads to the command. */
const RUNNERS: { readonly [program: string]: readonly string[] } = {
  npm: ['exec', 'x'],
  pnpm: ['exec', 'dlx'],
  yarn: ['exec', 'dlx'],
  bun: ['x'],
  uv: ['run'],
  poetry: ['run'],
  pipenv: ['run'],
  bundle: ['exec'],
  mise: ['exec'],
  direnv: ['exec'],
  op: ['run'],
  kubectl: ['exec'],
  docker: ['exec', 'run'],
  podman: ['exec', 'run'],
}
/** Of these the words are no paths that are read. */
const NOT_READING = new Set(
  (
    'echo printf ls test [ [[ stat touch mkdir rm rmdir chmod chown basename dirname realpath which '
    + 'type exa eza tree'
  ).split(' '),
)

class Classifier {
  readonly #found = new Set<CommandClass>()
  #work = 0

  get classes(): CommandClass[] {
    return CLASSES.filter(one => this.#found.has(one))
  }

  add(...classes: readonly CommandClass[]): void {
    for (const one of classes) this.#found.add(one)
  }

  /** The classes of a shell text. */
  shell(text: string, depth = 0): void {
    if (REFERENCE.test(text)) this.add('secrets.access')
    if (depth > MOST_DEPTH) return
    for (const command of parsedCommands(text)) {
      if (this.#work++ > MOST_WORK) return
      this.#command(command, depth)
    }
  }

  /** The classes of a script and of what it runs. */
  script(text: string, depth = 0): void {
    if (REFERENCE.test(text)) this.add('secrets.access')
    if (depth > MOST_DEPTH) return
    const { classes, lines, runs } = scriptFacts(text)
    this.add(...classes)
    for (const line of lines) this.shell(line, depth + 1)
    for (const words of runs) {
      if (this.#work++ > MOST_WORK) return
      this.#words(words, depth + 1)
    }
  }

  #command(command: ParsedCommand, depth: number): void {
    const { words, reads, writes, given, from } = command
    for (const path of writes) {
      if (/^\/dev\/(?:sd|hd|vd|nvme|mmcblk|disk|mapper|md|loop)/.test(path)) this.add('files.destructive')
      if (/^\/(?:etc|proc\/sys|sys|boot)\//.test(path)) this.add('system.privileged')
      const host = /^\/dev\/(?:tcp|udp)\/([^/]+)/.exec(path)?.[1]
      if (host !== undefined && !isLocalHost(host)) this.add('network.outbound')
    }
    if (reads.some(isSecretPath)) this.add('secrets.access')
    if (words.length === 0) return
    const said = [given ?? '', from ? saidBy(from) : ''].filter(Boolean).join('\n')
    this.#words(words, depth, said)
  }

  /** A program with its arguments, and the text that it reads. */
  #words(words: readonly string[], depth: number, read = ''): void {
    if (depth > MOST_DEPTH || words.length === 0 || (this.#work += words.length) > MOST_WORK) return
    const program = programOf(words[0]!)
    const name = program.toLowerCase()
    const rest = words.slice(1)
    this.add(...programClasses(program, rest))
    this.#paths(name, rest)
    if (SHELLS.has(name)) this.#shellProgram(rest, depth, read)
    else if (SCRIPTS.has(name)) this.#scriptProgram(rest, depth, read)
    else if (SQL.has(name) && isDestructiveSql(read)) this.add('database.destructive')
    else if (name === 'eval') this.shell(rest.join(' '), depth + 1)
    else if (name === 'env') this.#env(rest, depth)
    else if (name === 'find' || name === 'fd') this.#find(rest, depth)
    else if (name === 'su' || name === 'script') {
      const at = rest.findIndex(word => word === '-c' || word === '--command')
      if (at >= 0) this.shell(rest[at + 1] ?? '', depth + 1)
    } else if (name === 'ssh')
      this.shell(afterOptions(rest, ['-p', '-i', '-l', '-o', '-F', '-J']).slice(1).join(' '), depth + 1)
    else if (name === 'trap') this.shell(rest[0] ?? '', depth + 1)
    else if (Object.hasOwn(RUNNERS, name)) this.#runner(RUNNERS[name]!, rest, depth)
    else if (Object.hasOwn(WRAPPERS, name)) this.#wrapped(name, rest, depth, read)
  }

  #paths(name: string, rest: readonly string[]): void {
    if (NOT_READING.has(name)) return
    if (name === 'git' && ['check-ignore', 'rm', 'log', 'commit', 'status'].includes(operands(rest)[0] ?? '')) return
    // Of a copy the last word is where it goes.
    const copied = name === 'cp' || name === 'mv' || name === 'ln' || name === 'install'
    const words = copied
      ? rest.slice(0, -1)
      : name === 'find'
        ? rest.filter((_, at) => !/^-i?(?:name|path)$/.test(rest[at - 1] ?? ''))
        : rest
    const reads = words.some(word => {
      const value = word.startsWith('-') && word.includes('=') ? word.slice(word.indexOf('=') + 1) : word
      return isSecretPath(value.replace(/^@/, '')) || isSecretPath(/^[a-z]+=@?(\S+)$/i.exec(value)?.[1] ?? '')
    })
    if (reads) this.add('secrets.access')
  }

  #shellProgram(rest: readonly string[], depth: number, read: string): void {
    const at = rest.findIndex(word => /^-[a-z]*c$/.test(word) || word === '-Command')
    if (at >= 0) return this.shell(rest.slice(at + 1).find(word => !word.startsWith('-')) ?? '', depth + 1)
    if (operands(rest).length === 0 || hasOption(rest, 's')) this.shell(read, depth + 1)
  }

  #scriptProgram(rest: readonly string[], depth: number, read: string): void {
    rest.forEach((word, at) => {
      if (INLINE.has(word)) this.script(rest[at + 1] ?? '', depth + 1)
      else if (/^--eval=/.test(word)) this.script(word.slice(7), depth + 1)
    })
    if (operands(rest).length === 0) this.script(read, depth + 1)
    const run = rest.indexOf('run')
    if (run === 0) this.#words(rest.slice(1), depth + 1)
  }

  #env(rest: readonly string[], depth: number): void {
    const split = rest.findIndex(word => word === '-S' || word === '--split-string')
    if (split >= 0) return this.shell(rest.slice(split + 1).join(' '), depth + 1)
    const after = afterOptions(rest, WRAPPERS['env'])
    const from = after.findIndex(word => !/^[A-Za-z_]\w*=/.test(word))
    if (from >= 0) return this.#words(after.slice(from), depth + 1)
    if (after.length === 0 && rest.length === 0) this.add('secrets.access')
  }

  #find(rest: readonly string[], depth: number): void {
    for (let at = 0; at < rest.length; at++) {
      if (!/^(?:-exec|-execdir|-ok|-okdir|-x|-X|--exec|--exec-batch)$/.test(rest[at]!)) continue
      const end = rest.findIndex((other, index) => index > at && (other === ';' || other === '+'))
      const words = rest.slice(at + 1, end < 0 ? undefined : end)
      at += words.length
      // It goes through folders by itself, and nothing asks.
      if (programOf(words[0] ?? '') === 'rm') this.add('files.destructive')
      this.#words(words, depth + 1)
    }
  }

  #runner(verbs: readonly string[], rest: readonly string[], depth: number): void {
    const at = rest.findIndex(word => verbs.includes(word))
    if (at < 0) return
    const dashes = rest.indexOf('--', at)
    const after =
      dashes >= 0
        ? rest.slice(dashes + 1)
        : afterOptions(rest.slice(at + 1), ['-e', '-u', '-w', '-v', '-n', '--name', '--env-file', '-c', '--network'])
    this.#words(after, depth + 1)
    // Before the command of a container is its name or image.
    if (dashes < 0) this.#words(after.slice(1), depth + 1)
  }

  #wrapped(name: string, rest: readonly string[], depth: number, read: string): void {
    const after = afterOptions(rest, WRAPPERS[name])
    const skipped =
      name === 'timeout' || name === 'chroot' || name === 'flock' || name === 'taskset' ? after.slice(1) : after
    const from = skipped.findIndex(word => !/^[A-Za-z_]\w*=/.test(word))
    const words = from < 0 ? [] : skipped.slice(from)
    // One word with blanks is a whole line, as `watch` and `parallel` take it.
    if (words.length === 1 && /\s/.test(words[0]!)) this.shell(words[0]!, depth + 1)
    else
      this.#words(
        name === 'xargs' && read ? [...words, ...read.split(/\s+/).filter(Boolean).slice(0, 100)] : words,
        depth + 1,
        read,
      )
  }
}

/** The text that a command writes, where its words say it. */
const saidBy = ({ words, given, from }: ParsedCommand): string => {
  const program = programOf(words[0] ?? '')
  if (program === 'echo' || program === 'printf')
    return words
      .slice(1)
      .filter(word => !/^-[neE]+$/.test(word))
      .join(' ')
  if (program === 'cat' || program === 'tee') return given ?? (from ? saidBy(from) : '')
  return ''
}

/** The classes of a shell line. */
export const commandClasses = (text: string): CommandClass[] => {
  const classifier = new Classifier()
  classifier.shell(text)
  return classifier.classes
}

/** The classes of a script, which may be any language that calls functions, and of a shell script. */
export const scriptClasses = (text: string): CommandClass[] => {
  const classifier = new Classifier()
  if (/^#!.*\b(?:ba|z|da|k)?sh\b/.test(text)) classifier.shell(text)
  else classifier.script(text)
  return classifier.classes
}

/** The classes of what is decided about. */
export const classesOf = ({ kind, text }: SafetySubject): CommandClass[] => {
  if (kind === 'command') return commandClasses(text)
  if (kind === 'script') return scriptClasses(text)
  if (kind === 'path') return isSecretPath(text) ? ['secrets.access'] : []
  if (kind === 'host') return isLocalHost(text) ? [] : ['network.outbound']
  return REFERENCE.test(text) ? ['secrets.access'] : []
}
