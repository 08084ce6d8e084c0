import t from 'tap'
import {
  ecosystemsOf,
  packageManagerOf,
  shownCommand,
  type ProjectFiles,
} from '../../../plugins/workspace/projects/managers.js'
import { sessionName } from '../../../sdk/node/programs/session-name.js'
import { testsOf } from '../../../plugins/workspace/projects/test-commands.js'

const folder = (files: { readonly [name: string]: string }): ProjectFiles => ({
  has: name => Object.hasOwn(files, name),
  text: async name => files[name],
})

/** The commands of a folder, each with the file that decided. */
const commandsOf = async (files: { readonly [name: string]: string }): Promise<string[]> => {
  const found = folder(files)
  const managers = await Promise.all(ecosystemsOf(found).map(ecosystem => packageManagerOf(found, ecosystem)))
  return managers.flatMap(manager =>
    manager ? [`${manager.evidence}: ${manager.install.map(shownCommand).join(' && ')}`] : [],
  )
}

const PACKAGE = '{"dependencies":{"a":"^1"}}'
const PNPM = `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      a:
        specifier: ^1
        version: 1.0.0
`

t.test('lock files decide before fields and manifests, and are frozen where they agree', async t => {
  for (const [files, ...commands] of [
    [{ 'package.json': PACKAGE }, 'package.json: npm install'],
    [{ 'package.json': '{' }, 'package.json: npm install'],
    [{ 'package.json': '{"packageManager":"yarn@4.1.0"}' }, 'package.json: yarn install'],
    [{ 'package.json': '{"packageManager":"toString@1"}' }, 'package.json: npm install'],
    [
      { 'package.json': PACKAGE, 'package-lock.json': '{"packages":{"":{"dependencies":{"a":"^1"}}}}' },
      'package-lock.json: npm ci',
    ],
    [
      { 'package.json': PACKAGE, 'package-lock.json': '{"packages":{"":{"dependencies":{"a":"^2"}}}}' },
      'package-lock.json: npm install',
    ],
    [{ 'package.json': PACKAGE, 'pnpm-lock.yaml': PNPM }, 'pnpm-lock.yaml: pnpm install --frozen-lockfile'],
    [
      { 'package.json': '{"dependencies":{"b":"1"}}', 'pnpm-lock.yaml': PNPM, 'package-lock.json': '{}' },
      'pnpm-lock.yaml: pnpm install --no-frozen-lockfile',
    ],
    [{ 'package.json': PACKAGE, 'pnpm-workspace.yaml': '' }, 'pnpm-workspace.yaml: pnpm install --no-frozen-lockfile'],
    [{ 'package.json': PACKAGE, 'yarn.lock': 'a@^1:\n' }, 'yarn.lock: yarn install --frozen-lockfile'],
    [{ 'package.json': PACKAGE, 'yarn.lock': '__metadata:\n"a@npm:^1":\n' }, 'yarn.lock: yarn install --immutable'],
    [{ 'package.json': PACKAGE, 'yarn.lock': 'b@^1:\n' }, 'yarn.lock: yarn install'],
    [{ 'package.json': PACKAGE, 'bun.lock': '' }, 'bun.lock: bun install --frozen-lockfile'],
    [{ 'pyproject.toml': '[project]\nname = "a"', 'uv.lock': '' }, 'uv.lock: uv sync --frozen'],
    [{ 'pyproject.toml': '[tool.poetry]\nname = "a"' }, 'pyproject.toml: poetry install --no-interaction'],
    [{ 'pyproject.toml': '[tool.uv]' }, 'pyproject.toml: uv sync'],
    [{ 'pyproject.toml': '[tool.black]' }],
    [
      { 'pyproject.toml': '[project]\nname = "a"' },
      'pyproject.toml: python3 -m venv .venv && .venv/bin/python -m pip install -e .',
    ],
    [{ Pipfile: '', 'Pipfile.lock': '' }, 'Pipfile.lock: pipenv sync --dev'],
    [{ 'go.mod': '', 'go.sum': '' }, 'go.sum: go mod download'],
    [{ 'Cargo.toml': '', 'Cargo.lock': '' }, 'Cargo.lock: cargo fetch --locked'],
    [{ 'pom.xml': '', mvnw: '' }, 'pom.xml: sh ./mvnw -B dependency:resolve'],
    [{ 'build.gradle.kts': '', gradlew: '' }, 'build.gradle.kts: sh ./gradlew --no-daemon dependencies'],
    [{ 'package.json': PACKAGE, 'Cargo.toml': '' }, 'package.json: npm install', 'Cargo.toml: cargo fetch'],
    [{ 'README.md': '' }],
  ] as const)
    t.same(await commandsOf(files), commands, JSON.stringify(files))
})

t.test('the tests of a folder are those of its own manifest', async t => {
  const wordsOf = async (files: { readonly [name: string]: string }, ...folders: string[]) =>
    (await testsOf(folder(files), [...Object.keys(files), ...folders]))?.words.join(' ')
  t.equal(await wordsOf({ 'package.json': '{"scripts":{"test":"x"}}', 'pnpm-lock.yaml': '' }), 'pnpm run test')
  t.equal(await wordsOf({ 'package.json': '{"scripts":{}}', 'Cargo.toml': '' }), 'cargo test')
  t.equal(await wordsOf({ 'pyproject.toml': '[tool.pytest.ini_options]' }), 'python3 -m pytest')
  t.equal(await wordsOf({ 'requirements.txt': '' }, 'tests', '.venv'), '.venv/bin/python -m pytest')
  t.equal(await wordsOf({ 'uv.lock': '', 'pyproject.toml': '[project]\nname = "a"' }, 'tests'), 'uv run pytest')
  t.equal(await wordsOf({ 'go.mod': '' }), 'go test ./...')
  t.equal(await wordsOf({ Gemfile: '' }, 'spec'), 'bundle exec rspec')
  t.equal(await wordsOf({ 'README.md': '' }), undefined)
})

t.test('names of terminals have no character of the shell, and long ones keep apart', async t => {
  t.equal(sessionName('.', 'install'), 'panel-install')
  t.equal(sessionName('clients/my shop', 'install'), 'panel-clients--my_shop--install')
  const long = ['a', 'b'].map(end => sessionName(`${'x/'.repeat(60)}${end}`, 'install'))
  t.not(long[0], long[1])
  for (const name of long) t.match(name, /^panel-[A-Za-z0-9_-]{54}$/)
})
