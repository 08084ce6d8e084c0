import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { exactly } from '../../support/lists.js'

/** The part of the package `sqlite3` that the project's driver stands for. */
interface Connection {
  configure(option: string, value: number): void
  all(sql: string, ...rest: unknown[]): void
  close(done: (error: Error | null) => void): void
}
type Opening = new (path: string, opened: (error: Error | null) => void) => Connection

// Its types are those of a package that is not installed.
const { Database } = ((await import('sqlite3' as string)) as { default: { Database: Opening } }).default

const open = (path: string): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const connection = new Database(path, error => (error ? reject(error) : resolve(connection)))
  })

const all = (connection: Connection, sql: string, ...values: unknown[]): Promise<object[]> =>
  new Promise((resolve, reject) =>
    connection.all(sql, ...values, (error: Error | null, rows: object[]) => (error ? reject(error) : resolve(rows))),
  )

const closed = (connection: Connection): Promise<Error | null> => new Promise(done => connection.close(done))

const fileWith = async (t: Test): Promise<{ file: string; connection: Connection }> => {
  const file = join(t.testdir(), 'store.sqlite')
  const connection = await open(file)
  await all(connection, 'create table t (k text primary key, v text)')
  return { file, connection }
}

t.test('the driver is what @keyv/sqlite gets, and needs no compiler', async t => {
  const { name, private: own } = JSON.parse(readFileSync('node_modules/sqlite3/package.json', 'utf8')) as {
    name: string
    private?: boolean
  }
  t.same({ name, own }, { name: 'sqlite3', own: true })
})

t.test('statements take values and give rows, in the order of the calls', async t => {
  const { connection } = await fileWith(t)
  const answers = await Promise.all([
    all(connection, 'insert into t values (?, ?)', 'a', '1'),
    all(connection, 'select v from t where k = ?', 'a'),
    all(connection, 'update t set v = ? where k = ?', '2', 'a'),
    all(connection, 'select v from t'),
  ])
  t.match(answers, exactly(exactly(), exactly({ v: '1' }), exactly(), exactly({ v: '2' })))
  for (let n = 0; n < 100; n++) t.match(await all(connection, `select ${n} as n`), exactly({ n }))
  t.equal(await closed(connection), null)
})

t.test('a statement waits for the writer of another process without stopping this one', async t => {
  const { file, connection } = await fileWith(t)
  connection.configure('busyTimeout', 10_000)
  const other = new DatabaseSync(file)
  other.exec('begin immediate')
  const written = all(connection, "insert into t values ('a', '1')")
  let turns = 0
  const counting = setInterval(() => turns++, 1)
  await new Promise(done => setTimeout(done, 100))
  clearInterval(counting)
  t.ok(turns > 10, 'timers ran meanwhile')
  other.exec('commit')
  await written
  other.exec('begin immediate')
  connection.configure('busyTimeout', 20)
  await t.rejects(all(connection, "insert into t values ('b', '1')"), { code: 'SQLITE_BUSY' })
  other.exec('rollback')
  other.close()
  await closed(connection)
})

t.test('failures have the names of their result codes', async t => {
  const { file, connection } = await fileWith(t)
  await t.rejects(all(connection, 'select v from nowhere'), /no such table/)
  await t.rejects(open(join(t.testdirName, 'none', 'x.sqlite')), { code: 'SQLITE_CANTOPEN' })
  await all(connection, 'pragma max_page_count = 3')
  await t.rejects(all(connection, 'insert into t values (?, ?)', 'big', 'x'.repeat(100_000)), { code: 'SQLITE_FULL' })
  t.match(await all(connection, 'select count(*) as n from t'), exactly({ n: 0 }), 'nothing half-done is left')
  await closed(connection)
  writeFileSync(file, 'no database, but long enough to have a header of one'.repeat(10))
  const damaged = await open(file)
  await t.rejects(all(damaged, 'select * from t'), { code: 'SQLITE_NOTADB' })
  await closed(damaged)
  t.throws(() => damaged.configure('trace', 1), /expected busyTimeout, found trace/)
})
