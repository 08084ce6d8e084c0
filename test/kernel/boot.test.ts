import t from 'tap'
import { Boot } from '../../kernel/boot.js'
import { exactly } from '../support/lists.js'

t.test('steps run in order and the gate opens after them', async t => {
  const boot = new Boot(() => {})
  const ran: string[] = []
  boot.add('a', 'first', async () => void ran.push('first'))
  boot.add('b', 'second', async () => void ran.push('second'))
  const gate = boot.gate('a').then(() => ran.push('gate'))
  await boot.run()
  await gate
  t.same(ran, ['first', 'second', 'gate'])
  t.match(boot.progress(), {
    ready: true,
    steps: exactly({ key: 'a-1', state: 'done' }, { key: 'b-1', state: 'done' }),
  })
})

t.test('a read waits only for the steps of its group and of those before it', async t => {
  const boot = new Boot(() => {})
  const open = (reads: boolean) => ['a', 'b', 'c', 'd'].map(group => boot.isOpen(group, reads))
  const seen: boolean[][] = []
  boot.add('c', 'third', async () => void seen.push(open(true), open(false)))
  boot.add('a', 'first', async () => void seen.push(open(true), open(false)))
  t.same(open(true), [false, false, false, false])
  await boot.run(['a', 'b', 'c', 'd'])
  t.same(seen, [
    [false, false, false, false],
    [false, false, false, false],
    [true, true, false, false],
    [false, false, false, false],
  ])
  t.same(open(true), [true, true, true, true])
})

t.test('a failed step closes only its own group, whose later steps do not run', async t => {
  const failed: string[] = []
  const boot = new Boot((plugin, label) => failed.push(`${plugin} ${label}`))
  let later = false
  boot.add('a', 'reading', async () => {
    throw new Error('disk on fire')
  })
  boot.add('a', 'sweeping', async () => {
    later = true
  })
  boot.add('b', 'reading', async () => {})
  await boot.run()
  t.same(failed, ['a reading'])
  t.notOk(later)
  await t.rejects(boot.gate('a'), { reason: 'unavailable', message: 'a did not start: reading failed: disk on fire' })
  await t.resolves(boot.gate('b'))
})

t.test('once the daemon stops no step begins, and the running one does not count as failed', async t => {
  const failed: string[] = []
  const boot = new Boot((plugin, label) => failed.push(`${plugin} ${label}`))
  let later = false
  boot.add('a', 'reading', async () => {
    boot.end()
    throw new Error('the store is closed')
  })
  boot.add('b', 'reading', async () => {
    later = true
  })
  await boot.run()
  t.same(failed, [])
  t.notOk(later)
})
