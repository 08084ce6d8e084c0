import { linkSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { project } from '../support/browser/page.js'
import { noPeer, peerPath } from '../support/peers.js'

/** An agent program as npm brings it. */
export interface RealProgram {
  /** The id of its connection. */
  readonly id: string
  readonly label: string
  /** Its package, whose version the table names. */
  readonly package: string
  /** The file that its name stands for. */
  readonly file: string
  /** What a person types to connect it. */
  readonly command: string
  /** The variables that make it ask a model server. */
  readonly env: (server: string) => { readonly [name: string]: string }
  /** Left out: it chooses one itself. */
  readonly model?: string
  /** It loses a session that it loads in the minute of the clock in which the session began. */
  readonly losesWithinMinute?: true
}

export const PROGRAMS: readonly RealProgram[] = [
  {
    id: 'opencode',
    label: 'OpenCode',
    package: 'opencode-linux-x64-baseline',
    file: 'opencode-linux-x64-baseline/bin/opencode',
    command: 'opencode acp',
    env: server => ({
      OPENCODE_CONFIG_CONTENT: JSON.stringify({
        model: 'local/m1',
        // The sandbox asks although the program's own settings allow everything.
        permission: 'allow',
        provider: {
          local: {
            npm: '@ai-sdk/openai-compatible',
            name: 'Local',
            options: { baseURL: `${server}/v1`, apiKey: 'k' },
            models: { m1: { name: 'M1' } },
          },
        },
      }),
      OPENCODE_DISABLE_MODELS_FETCH: 'true',
    }),
  },
  {
    id: 'claude',
    label: 'Claude',
    package: '@agentclientprotocol/claude-agent-acp',
    file: '@agentclientprotocol/claude-agent-acp/dist/index.js',
    command: 'claude-agent-acp',
    env: server => ({
      ANTHROPIC_BASE_URL: server,
      ANTHROPIC_API_KEY: 'k',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
  },
  {
    id: 'codex',
    label: 'Codex',
    package: '@agentclientprotocol/codex-acp',
    file: '@agentclientprotocol/codex-acp/dist/index.js',
    command: 'codex-acp',
    env: server => ({
      CODEX_CONFIG: JSON.stringify({
        model: 'm1',
        model_provider: 'local',
        model_providers: {
          local: { name: 'Local', base_url: `${server}/v1`, wire_api: 'responses', env_key: 'LOCAL_KEY' },
        },
      }),
      MODEL_PROVIDER: 'local',
      LOCAL_KEY: 'k',
      NO_BROWSER: '1',
    }),
  },
  {
    id: 'gemini',
    label: 'Gemini',
    package: '@google/gemini-cli',
    file: '@google/gemini-cli/bundle/gemini.js',
    command: 'gemini --acp',
    env: server => ({ GEMINI_API_KEY: 'k', GOOGLE_GEMINI_BASE_URL: server, GEMINI_MODEL: 'gemini-2.5-pro' }),
    losesWithinMinute: true,
  },
  {
    id: 'qwen',
    label: 'Qwen Code',
    package: '@qwen-code/qwen-code',
    file: '@qwen-code/qwen-code/cli-entry.js',
    command: 'qwen --acp',
    env: server => ({ OPENAI_API_KEY: 'k', OPENAI_BASE_URL: `${server}/v1`, OPENAI_MODEL: 'm1' }),
  },
]

/** The reason for skipping the tests of a program; false: they run. */
export const missing = ({ file }: RealProgram): string | false => noPeer(file)

/** The version of a program that is installed. */
export const versionOf = (program: RealProgram): string =>
  (JSON.parse(readFileSync(peerPath(join(program.package, 'package.json')), 'utf8')) as { version: string }).version

/**
 * The folder in which a person has these programs: their names, and the Node that runs them, as a global install of npm
 * below a version of Node has it.
 */
export const programFolder = (): string => {
  const folder = peerPath('.programs')
  mkdirSync(folder, { recursive: true })
  once(() => linkSync(join(project, 'node_modules/node/bin/node'), join(folder, 'node')))
  for (const { command, file } of PROGRAMS)
    once(() => symlinkSync(join('..', file), join(folder, command.split(' ')[0]!)))
  return folder
}

/** Several test files make it at the same time. */
const once = (make: () => void): void => {
  try {
    make()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}
