import { linePrinter } from '../lines/lines.js'
import { misused, type Terminal, type Verb } from '../verb.js'
import {
  deployAdopt,
  deployApply,
  deployKinds,
  deployPlan,
  deployResolve,
  deployStatus,
  type DeployRun,
} from './commands.js'

/** The commands of `deploy`, in the order in which they are used. */
export const DEPLOY_COMMANDS: readonly {
  readonly name: string
  readonly summary: string
  /** Only an apply runs it for people who ask the daemon. */
  readonly applies?: true
  readonly changes?: true
  readonly run: (run: DeployRun) => Promise<number>
}[] = [
  { name: 'kinds', summary: 'list what may be declared, with its options', run: deployKinds },
  { name: 'resolve', summary: 'work out what should run, and commit it to desired-state', run: deployResolve },
  { name: 'plan', summary: 'say what an apply would change on the machines', run: deployPlan },
  {
    name: 'apply',
    summary: 'make the machines run what was resolved',
    applies: true,
    changes: true,
    run: deployApply,
  },
  { name: 'adopt', summary: 'record in desired-state what runs', run: deployAdopt },
  { name: 'status', summary: 'say what runs on each machine', run: deployStatus },
]

/** Deploys what the inventory declares. */
export const deploy: Verb = {
  name: 'deploy',
  usage: DEPLOY_COMMANDS.map(({ name }) => name).join('|'),
  summary: 'run the services and apps of the inventory on its machines',
  examples: ['deploy plan', 'deploy resolve', 'deploy apply', 'deploy adopt'],
  notes: [
    ...DEPLOY_COMMANDS.map(({ name, summary }) => `${name}: ${summary}`),
    'It works in the folder of a workspace, and reads keys and passwords from variables with their names in the secret',
    'store, such as HOST_SSH_KEY_HOME. A daemon runs it with the stored ones: cli apply.',
  ],
  flags: {
    expect: { value: 'DIGEST', help: 'apply only what a plan showed with this digest' },
    json: { help: 'print JSON, one value a line' },
  },
  least: 1,
  most: 1,
  run: (terminal: Terminal, given) => {
    const [name = ''] = given.args
    const command =
      DEPLOY_COMMANDS.find(each => each.name === name)
      ?? misused(`expected deploy ${deploy.usage}, found ${name.slice(0, 60)}`)
    const expect = given.text('expect')
    if (expect !== undefined && !command.applies) misused('--expect: expected deploy apply')
    return command.run({
      terminal,
      print: linePrinter(terminal, given.on('json')),
      ...(expect !== undefined && { expect }),
    })
  },
}
