import type { PathTree } from '../../../sdk/node/files/open-path.js'
import { keysAt, manifestText, manifestValue, type ManifestValue, textAt } from '../repositories/manifests.js'
import { pathIn } from '../tree/ignore-rules.js'
import type { Ecosystem } from './contract.js'

/** A program and its arguments. */
export type Words = readonly string[]

/** How a folder is installed. */
export interface FoundManager {
  readonly ecosystem: Ecosystem
  readonly manager: string
  /** The file that decided. */
  readonly evidence: string
  /** The program that must be on this machine. */
  readonly program: string
  readonly install: readonly Words[]
  /** The files that decide what is installed. */
  readonly files: readonly string[]
}

/** The files of a folder by which package managers are recognized. */
export interface ProjectFiles {
  has(name: string): boolean
  text(name: string): Promise<string | undefined>
}

/** The files of a folder of a tree. */
export const projectFiles = (tree: PathTree, path: string, names: ReadonlySet<string>): ProjectFiles => ({
  has: name => names.has(name),
  text: async name => (names.has(name) ? manifestText(tree, pathIn(path, name)) : undefined),
})

type Choice = Omit<FoundManager, 'ecosystem' | 'evidence' | 'files'>
/** Decides by a file that is there; undefined: another file decides. */
type Decide = (files: ProjectFiles) => Promise<Choice | undefined> | Choice | undefined

const sorted = (value: ManifestValue, key: string): string =>
  JSON.stringify(
    keysAt(value, key)
      .sort()
      .map(name => [name, textAt(value, key, name)]),
  )

/** Whether a lock file of npm was made of this manifest; a frozen install fails if it was not. */
const agrees = async (files: ProjectFiles, lock: string): Promise<boolean> => {
  const [manifest, locked] = [
    await manifestValue('package.json', await files.text('package.json')),
    await manifestValue(lock, await files.text(lock)),
  ]
  const packages = (locked as { packages?: { '': ManifestValue } } | undefined)?.packages
  if (packages === undefined) return false
  return ['dependencies', 'devDependencies', 'optionalDependencies'].every(
    key => sorted(manifest, key) === sorted(packages[''], key),
  )
}

/** Whether a lock file of pnpm or yarn names every dependency of the manifest with what it asks for. */
const namesAll = async (files: ProjectFiles, lock: string): Promise<boolean> => {
  const manifest = await manifestValue('package.json', await files.text('package.json'))
  const text = (await files.text(lock)) ?? ''
  const importer = lock === 'pnpm-lock.yaml' ? await manifestValue(lock, text) : undefined
  return ['dependencies', 'devDependencies'].every(key =>
    keysAt(manifest, key).every(name => {
      const asked = textAt(manifest, key, name) ?? ''
      if (lock === 'yarn.lock') return text.includes(`${name}@${asked}`) || text.includes(`${name}@npm:${asked}`)
      return (
        (textAt(importer, 'importers', '.', key, name, 'specifier') ?? textAt(importer, 'specifiers', name)) === asked
      )
    }),
  )
}

const npm = async (files: ProjectFiles, lock?: string): Promise<Choice> => ({
  manager: 'npm',
  program: 'npm',
  install: [['npm', lock !== undefined && (await agrees(files, lock)) ? 'ci' : 'install']],
})
const pnpm = async (files: ProjectFiles, lock?: string): Promise<Choice> => ({
  manager: 'pnpm',
  program: 'pnpm',
  install: [
    [
      'pnpm',
      'install',
      lock !== undefined && (await namesAll(files, lock)) ? '--frozen-lockfile' : '--no-frozen-lockfile',
    ],
  ],
})
const yarn = async (files: ProjectFiles, lock?: string): Promise<Choice> => {
  const text = lock === undefined ? '' : ((await files.text(lock)) ?? '')
  const frozen = text.includes('__metadata:') ? '--immutable' : '--frozen-lockfile'
  const fits = lock !== undefined && (await namesAll(files, lock))
  return { manager: 'yarn', program: 'yarn', install: [['yarn', 'install', ...(fits ? [frozen] : [])]] }
}
const bun = (_: ProjectFiles, lock?: string): Choice => ({
  manager: 'bun',
  program: 'bun',
  install: [['bun', 'install', ...(lock === undefined ? [] : ['--frozen-lockfile'])]],
})

const NODE = { npm, pnpm, yarn, bun } as const
const isNode = (name: string): name is keyof typeof NODE => Object.hasOwn(NODE, name)

/** By the field `packageManager`, such as `pnpm@9.1.0`. */
const byField: Decide = async files => {
  const field = textAt(await manifestValue('package.json', await files.text('package.json')), 'packageManager')
  const name = field?.split('@', 1)[0] ?? ''
  return isNode(name) ? NODE[name](files) : undefined
}

const VENV = ['python3', '-m', 'venv', '.venv']
const pip = (...what: string[]): Choice => ({
  manager: 'pip',
  program: 'python3',
  install: [VENV, ['.venv/bin/python', '-m', 'pip', 'install', ...what]],
})
const only = (manager: string, ...install: Words[]): Choice => ({ manager, program: install[0]![0]!, install })

const pyproject: Decide = async files => {
  const value = await manifestValue('pyproject.toml', await files.text('pyproject.toml'))
  const tools = keysAt(value, 'tool')
  if (tools.includes('poetry')) return only('poetry', ['poetry', 'install', '--no-interaction'])
  if (tools.includes('pdm')) return only('pdm', ['pdm', 'install'])
  if (tools.includes('uv')) return only('uv', ['uv', 'sync'])
  return keysAt(value, 'project').length > 0 || keysAt(value, 'build-system').length > 0 ? pip('-e', '.') : undefined
}

const composer: Decide = () => only('composer', ['composer', 'install', '--no-interaction'])
const bundle: Decide = () =>
  only('bundler', ['bundle', 'config', 'set', '--local', 'path', 'vendor/bundle'], ['bundle', 'install'])
const maven: Decide = files =>
  files.has('mvnw')
    ? { ...only('maven', ['sh', './mvnw', '-B', 'dependency:resolve']), program: 'java' }
    : only('maven', ['mvn', '-B', 'dependency:resolve'])
const gradle: Decide = files =>
  files.has('gradlew')
    ? { ...only('gradle', ['sh', './gradlew', '--no-daemon', 'dependencies']), program: 'java' }
    : only('gradle', ['gradle', '--no-daemon', 'dependencies'])

interface Rule {
  readonly file: string
  readonly decide: Decide
}
const rule = (file: string, decide: Decide): Rule => ({ file, decide })

interface EcosystemRules {
  /** The files of which a project has one. */
  readonly manifests: readonly string[]
  /** The first file that is there decides: lock files, then what manifests say. */
  readonly rules: readonly Rule[]
}

/** How package managers are recognized. */
const RULES: { readonly [ecosystem in Ecosystem]: EcosystemRules } = {
  node: {
    manifests: ['package.json'],
    rules: [
      rule('pnpm-lock.yaml', files => pnpm(files, 'pnpm-lock.yaml')),
      rule('yarn.lock', files => yarn(files, 'yarn.lock')),
      rule('bun.lock', files => bun(files, 'bun.lock')),
      rule('bun.lockb', files => bun(files, 'bun.lockb')),
      rule('npm-shrinkwrap.json', files => npm(files, 'npm-shrinkwrap.json')),
      rule('package-lock.json', files => npm(files, 'package-lock.json')),
      rule('package.json', byField),
      rule('pnpm-workspace.yaml', files => pnpm(files)),
      rule('package.json', files => npm(files)),
    ],
  },
  python: {
    manifests: ['pyproject.toml', 'requirements.txt', 'Pipfile', 'setup.py'],
    rules: [
      rule('uv.lock', () => only('uv', ['uv', 'sync', '--frozen'])),
      rule('poetry.lock', () => only('poetry', ['poetry', 'install', '--no-interaction'])),
      rule('pdm.lock', () => only('pdm', ['pdm', 'sync'])),
      rule('Pipfile.lock', () => only('pipenv', ['pipenv', 'sync', '--dev'])),
      rule('Pipfile', () => only('pipenv', ['pipenv', 'install', '--dev'])),
      rule('requirements.txt', () => pip('-r', 'requirements.txt')),
      rule('pyproject.toml', pyproject),
      rule('setup.py', () => pip('-e', '.')),
    ],
  },
  go: {
    manifests: ['go.work', 'go.mod'],
    rules: [
      rule('go.sum', () => only('go', ['go', 'mod', 'download'])),
      rule('go.work', () => only('go', ['go', 'mod', 'download'])),
      rule('go.mod', () => only('go', ['go', 'mod', 'download'])),
    ],
  },
  rust: {
    manifests: ['Cargo.toml'],
    rules: [
      rule('Cargo.lock', () => only('cargo', ['cargo', 'fetch', '--locked'])),
      rule('Cargo.toml', () => only('cargo', ['cargo', 'fetch'])),
    ],
  },
  ruby: { manifests: ['Gemfile'], rules: [rule('Gemfile.lock', bundle), rule('Gemfile', bundle)] },
  php: { manifests: ['composer.json'], rules: [rule('composer.lock', composer), rule('composer.json', composer)] },
  jvm: {
    manifests: ['pom.xml', 'build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts'],
    rules: [
      rule('pom.xml', maven),
      ...['build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts'].map(file => rule(file, gradle)),
    ],
  },
}

const ECOSYSTEMS = Object.keys(RULES) as Ecosystem[]

/** The programs of all package managers. */
export const MANAGER_PROGRAMS = [
  ...Object.keys(NODE),
  ...['python3', 'uv', 'poetry', 'pdm', 'pipenv', 'go', 'cargo', 'bundle', 'composer', 'mvn', 'gradle', 'java'],
] as const

/** The languages of which a folder has a manifest. */
export const ecosystemsOf = (files: Pick<ProjectFiles, 'has'>): Ecosystem[] =>
  ECOSYSTEMS.filter(ecosystem => RULES[ecosystem].manifests.some(file => files.has(file)))

/** The package manager of a folder; undefined when it has no manifest that needs one. */
export const packageManagerOf = async (
  files: ProjectFiles,
  ecosystem: Ecosystem,
): Promise<FoundManager | undefined> => {
  const { manifests, rules } = RULES[ecosystem]
  for (const { file, decide } of rules) {
    const choice = files.has(file) ? await decide(files) : undefined
    if (choice)
      return {
        ...choice,
        ecosystem,
        evidence: file,
        files: [...new Set([...manifests, ...rules.map(each => each.file)])].filter(each => files.has(each)),
      }
  }
  return undefined
}

/** A command as it is shown. */
export const shownCommand = (words: Words): string =>
  words.map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ')
