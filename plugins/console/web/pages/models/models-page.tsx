import type { ProviderRow } from '../../../../providers/contract.js'
import { askDaemon } from '../../data/api.js'
import { served } from '../../data/live.js'
import { person } from '../../data/session/session.js'
import { momentOf, visibleName } from '../../ui/format.js'
import { Item, Loaded, PageFrame, type ToneWord } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import { reaches, type PageProps } from '../registry.js'
import { LocalSection } from './local-section.js'
import { ServerSection } from './server-section.js'

const READY: { readonly [ready in ProviderRow['ready']]: ToneWord } = {
  yes: ['good', 'Ready'],
  'no-account': ['', 'No account'],
  'needs-reauth': ['warn', 'Sign in again'],
  spent: ['warn', 'Used up'],
  refused: ['bad', 'Refused'],
  'missing-program': ['warn', 'Program missing'],
}

const Providers = () => {
  const list = useQuery('providers', ['providers', 'accounts', 'endpoints', 'capabilities'], () =>
    askDaemon('GET /providers'),
  )
  return (
    <section aria-labelledby="providers-heading">
      <h2 id="providers-heading">Providers</h2>
      <Loaded query={list}>
        {({ providers, problems }) => (
          <>
            {problems.map(({ file, message }) => (
              <p key={file} class="notice warn">
                <span class="mono">{visibleName(file)}</span> was not loaded: {visibleName(message)}
              </p>
            ))}
            <ul class="items">
              {providers.map(({ id, label, ready, detail, reopensAt, default: model, paid }) => (
                <Item
                  key={id}
                  title={visibleName(label)}
                  state={READY[ready] ?? ['', ready]}
                  detail={
                    <>
                      <span class="mono">{visibleName(id)}</span>
                      {model && (
                        <>
                          {' '}
                          · default model <span class="mono">{visibleName(model)}</span>
                        </>
                      )}
                      {paid && ' · paid for each token'}
                      {detail && ` · ${visibleName(detail)}`}
                      {reopensAt !== undefined && ` · again from ${momentOf(reopensAt)}`}
                    </>
                  }
                />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </section>
  )
}

/** The models for turns, and the connections of agents. */
export const ModelsPage = (_: PageProps) => {
  const maintains = reaches(person.value?.role, 'maintainer')
  return (
    <PageFrame title="Models and agents">
      {served.value.has('endpoints.list') && <ServerSection maintains={maintains} />}
      {served.value.has('endpoints.localModelFit') && <LocalSection maintains={maintains} />}
      <Providers />
    </PageFrame>
  )
}
