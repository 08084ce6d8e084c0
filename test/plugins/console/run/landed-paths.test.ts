import t from 'tap'
import { draftsFor, landerOf } from '../../../../plugins/console/web/run/landed-paths.js'

const landedMessage = { subject: 'Greet' }
const AGENTS = { one: { title: 'One', provider: 'p', landedMessage }, two: { provider: 'p', landedMessage } }
const CHANGES = { origins: { 'a.txt': ['one', 'two'], 'b.txt': ['two'] } }

t.test('a changed path names the conversation that landed it last, whatever its name is', t => {
  const named = (path: string) => landerOf(CHANGES, AGENTS, path)
  t.same(['a.txt', 'b.txt', 'c.txt'].map(named), ['One', 'two', undefined])
  t.same(['constructor', 'toString', '__proto__'].map(named), [undefined, undefined, undefined])
  t.equal(landerOf({}, {}, 'constructor'), undefined)
  t.end()
})

t.test('a drafted message is offered once', t => {
  t.same(draftsFor(CHANGES, AGENTS), ['Greet'])
  t.same(draftsFor({}, AGENTS), [])
  t.end()
})
