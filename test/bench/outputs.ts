// What shortening the output of a command costs, against starting a program: `node dist/test/bench/outputs.js`.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { CATALOGUE } from '../../sdk/node/outputs/catalogue.js'
import { cleanOutput } from '../../sdk/node/outputs/clean.js'
import { programsOf } from '../../sdk/node/outputs/commands.js'
import { inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'

const ROUNDS = quick ? 3 : 15
const FOLDER = new URL('../../../test/fixtures/outputs/', import.meta.url)
const ids = new Set(CATALOGUE.map(({ id }) => id))
const programs = programsOf('npm test')
const outputs = readdirSync(FOLDER).map(name => readFileSync(new URL(name, FOLDER), 'utf8'))
const together = outputs.join('\n')
const large = together.repeat(Math.ceil(1_048_576 / together.length)).slice(0, 1_048_576)

const rounds = await inTurns(
  {
    start: () => timed(() => execFileSync('/bin/true')),
    recorded: () => timed(() => outputs.map(output => cleanOutput(output, programs, ids))),
    large: () => timed(() => cleanOutput(large, programs, ids)),
  },
  ROUNDS,
)
const each = rounds.recorded.map(time => time / outputs.length)
print('an output of a command, shortened', ms(median(each)), `${outputs.length} recorded ones`)
print('1 MiB of outputs, shortened', ms(median(rounds.large)))
verdict('shortening an output, to starting a program without a wall', ratio(each, rounds.start), { most: 0.5, as: x })
