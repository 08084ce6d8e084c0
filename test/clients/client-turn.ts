import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import type { Test } from 'tap'
import ts from 'typescript'
import { daemonWith, type Support, type SupportOptions } from '../support/daemon.js'

/**
 * What every client does: a turn in a private copy that writes a file and asks a question, its answer, and the landing.
 */
export const TURN = {
  conversationId: 'greeting',
  isolated: true,
  prompt: 'write greeting.txt\n| hello\nask Which language?\n| English: as it is\n| French: bonjour\nsay took $answer',
} as const

/** A daemon for a third-party client, and a folder for the client's files. */
export const daemonFor = async (
  t: Test,
  options: SupportOptions = {},
): Promise<Support & { readonly folder: string }> => {
  const daemon = await daemonWith(t, ['system', 'settings', 'agent', 'agents', 'areas', 'activity'], options)
  const folder = join(daemon.data, '..', 'client')
  mkdirSync(folder)
  return { ...daemon, folder }
}

/** Holds when the client's turn took the answer and its work is in the shared tree. */
export const checkLanded = async (t: Test, { client, workspace }: Support): Promise<void> => {
  t.equal(readFileSync(join(workspace, 'greeting.txt'), 'utf8').trim(), 'hello', 'the work is in the workspace')
  const { messages } = await client.call('GET /agents/{id}/transcript', { id: TURN.conversationId })
  t.ok(
    messages.some(({ text }) => text === 'took French'),
    'the turn went on with the answer',
  )
  t.equal((await client.call('GET /agents/{id}', { id: TURN.conversationId })).status, 'landed')
}

/** What the compiler has to say about a client's program, in its strict mode. */
export const typeFaults = (file: string): string[] => {
  const program = ts.createProgram([file], {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    exactOptionalPropertyTypes: true,
    target: ts.ScriptTarget.ES2023,
    types: ['node'],
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    allowImportingTsExtensions: true,
    lib: ['lib.es2024.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts', 'lib.dom.asynciterable.d.ts'],
    typeRoots: [join(process.cwd(), 'node_modules/@types')],
  })
  return ts.getPreEmitDiagnostics(program).map(({ messageText, file: at, start = 0 }) => {
    const line = at && at.getLineAndCharacterOfPosition(start).line + 1
    return `${at?.fileName}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

/** Runs a client's program as a process of its own against a daemon, and answers the last line it printed. */
export const runProgram = async (
  file: string,
  { url, session, folder }: Support & { readonly folder: string },
): Promise<unknown> => {
  const outfile = join(folder, 'client.mjs')
  await build({
    entryPoints: [file],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
    nodePaths: [join(process.cwd(), 'node_modules')],
  })
  return JSON.parse(
    (await outputOf(process.execPath, [outfile, url, session, JSON.stringify(TURN)])).trim().split('\n').at(-1) ?? '',
  )
}

/** What a program prints; fails with its last words. */
export const outputOf = (program: string, args: readonly string[]): Promise<string> =>
  new Promise((done, failed) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, NODE_OPTIONS: '' } })
    let [out, err] = ['', '']
    child.stdout.on('data', text => (out += text))
    child.stderr.on('data', text => (err += text))
    child.on('error', failed)
    child.on('close', code => (code === 0 ? done(out) : failed(new Error(`${program} ended with ${code}: ${err}`))))
  })
