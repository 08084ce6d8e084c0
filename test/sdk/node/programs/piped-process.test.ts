import t from 'tap'
import { listEnv } from '../../../../sdk/node/programs/run.js'
import { linesWithin, PipedProcess } from '../../../../sdk/node/programs/piped-process.js'

t.test('a program has ended although a process that left its group keeps its outputs', async t => {
  const script = "setsid sh -c 'echo $$; exec sleep 300' & sleep 0.5; echo last; exit 4"
  const piped = new PipedProcess({ program: 'sh', args: ['-c', script], env: listEnv(), cwd: '/', enforced: false })
  const lines: string[] = []
  const read = (async () => {
    for await (const line of linesWithin(piped.output as AsyncIterable<Buffer>, 1000)) lines.push(line)
  })()
  t.equal(await piped.ended, 'ended with exit code 4')
  await read.catch(error => t.match(error, { code: /PREMATURE_CLOSE/ }))
  const [left = '', last] = lines
  t.equal(last, 'last', 'what it said is read')
  if (!/^\d+$/.test(left)) return void t.fail(`expected a process, found ${left}`)
  t.ok(process.kill(Number(left), 0))
  process.kill(Number(left), 'SIGKILL')
})
