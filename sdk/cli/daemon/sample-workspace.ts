import fs from 'node:fs'
import { access, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Terminal } from '../verb.js'
import { stateRoot } from './daemon.js'

interface SampleCommit {
  readonly message: string
  /** Seconds since the epoch: the same history every time. */
  readonly at: number
  readonly files: { readonly [path: string]: string }
}

const AUTHOR = { name: 'Sandbox Sample', email: 'sample@sandbox.local', timezoneOffset: 0 } as const

const HISTORY: readonly SampleCommit[] = [
  {
    message: 'Say hello',
    at: 1_767_258_000,
    files: {
      'README.md': '# Greetings\n\nA small program that greets people.\n\n    node src/main.js Ada\n',
      'package.json':
        '{\n  "name": "greetings",\n  "version": "0.1.0",\n  "private": true,\n  "type": "module",\n'
        + '  "scripts": {\n    "start": "node src/main.js",\n    "test": "node --test"\n  }\n}\n',
      'src/main.js': "const [name = 'world'] = process.argv.slice(2)\nconsole.log(`Hello, ${name}!`)\n",
      '.gitignore': 'node_modules\n',
    },
  },
  {
    message: 'Greet in several languages',
    at: 1_767_344_400,
    files: {
      'src/greeting.js':
        "const HELLO = { en: 'Hello', de: 'Hallo', fr: 'Bonjour', es: 'Hola' }\n\n"
        + '/** A greeting in one of the languages we speak; English for any other. */\n'
        + "export const greeting = (name, language = 'en') => `${HELLO[language] ?? HELLO.en}, ${name}!`\n",
      'src/main.js':
        "import { greeting } from './greeting.js'\n\n"
        + "const [name = 'world', language] = process.argv.slice(2)\nconsole.log(greeting(name, language))\n",
      'README.md':
        '# Greetings\n\nA small program that greets people in their language.\n\n    node src/main.js Ada fr\n',
    },
  },
  {
    message: 'Test the greetings',
    at: 1_767_430_800,
    files: {
      'test/greeting.test.js':
        "import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n"
        + "import { greeting } from '../src/greeting.js'\n\n"
        + "test('a greeting is in the language asked for', () => {\n"
        + "  assert.equal(greeting('Ada', 'fr'), 'Bonjour, Ada!')\n})\n\n"
        + "test('a language we do not speak gets English', () => {\n"
        + "  assert.equal(greeting('Ada', 'xx'), 'Hello, Ada!')\n})\n",
    },
  },
  {
    message: 'Write down what comes next',
    at: 1_767_517_200,
    files: { 'TODO.md': '# Next\n\n- greet by the time of day\n- read the name from the environment\n' },
  },
]

/** The sample workspace: a repository with a few commits, created on first use and not changed later. */
export const sampleWorkspace = async (env: Terminal['env']): Promise<string> => {
  const workspace = join(stateRoot(env), 'sample', 'workspace')
  if (await exists(workspace)) return workspace
  await mkdir(dirname(workspace), { recursive: true, mode: 0o700 })
  const made = await mkdtemp(join(dirname(workspace), 'new-'))
  try {
    await fill(made)
    await rename(made, workspace)
  } catch (error) {
    await rm(made, { recursive: true, force: true })
    if (!(await exists(workspace))) throw error
  }
  return workspace
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

const fill = async (dir: string): Promise<void> => {
  const { default: git } = await import('isomorphic-git')
  await git.init({ fs, dir, defaultBranch: 'main' })
  for (const { message, at, files } of HISTORY) {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(dir, path)), { recursive: true })
      await writeFile(join(dir, path), text)
      await git.add({ fs, dir, filepath: path })
    }
    await git.commit({ fs, dir, message, author: { ...AUTHOR, timestamp: at } })
  }
}
