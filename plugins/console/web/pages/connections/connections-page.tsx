import type { CatalogCard, Recommendation } from '../../../../capabilities/contract.js'
import { askDaemon } from '../../data/api.js'
import { useAction } from '../../ui/action.js'
import { ActionButton } from '../../ui/action-button.js'
import { FormButton } from '../../ui/dialog.js'
import { visibleName } from '../../ui/format.js'
import { FaultLine, Item, Loaded, PageFrame } from '../../ui/page.js'
import { useQuery } from '../../ui/query.js'
import type { PageProps } from '../registry.js'
import { CardArt } from './card-looks.js'
import { ConnectForm, connectionsChanged } from './connect-form.js'
import { ConnectionRow } from './connection-row.js'

const SuggestionRow = ({ suggestion, card }: { suggestion: Recommendation; card?: CatalogCard }) => {
  const { evidence, reason, prefill } = suggestion
  const action = useAction()
  const name = visibleName(card?.name ?? suggestion.card)
  const dismiss = async () => {
    await askDaemon('DELETE /capabilities/recommendations/{card}', { card: suggestion.card })
    connectionsChanged()
  }
  return (
    <Item
      title={name}
      detail={
        <>
          <div>{visibleName(reason)}</div>
          <div class="mono">{visibleName(evidence)}</div>
          <FaultLine fault={action.fault} />
        </>
      }
    >
      {card?.available && (
        <FormButton
          label="Connect"
          about={name}
          primary
          form={close => <ConnectForm card={card} prefill={prefill} close={close} />}
        />
      )}
      <ActionButton action={action} work={dismiss} about={name}>
        Do not suggest
      </ActionButton>
    </Item>
  )
}

/** What agents use outside of the workspace, and what could be connected; the address of a card opens its form. */
export const ConnectionsPage = ({ rest: [wanted] }: PageProps) => {
  const list = useQuery('capabilities', ['capabilities'], () => askDaemon('GET /capabilities'))
  const catalog = useQuery('catalog', ['capabilities'], () => askDaemon('GET /capabilities/catalog'))
  const cards = new Map(catalog.data?.cards.map(card => [card.id, card]))
  const cardOf = (id: string) => {
    const card = cards.get(id)
    return card && { card }
  }
  return (
    <PageFrame title="Connections">
      <Loaded query={list}>
        {({ capabilities, recommendations }) => {
          // Model servers and models of this machine are on the page of models.
          const others = capabilities.filter(({ kind }) => kind !== 'endpoint' && kind !== 'localmodel')
          return (
            <>
              {recommendations.length > 0 && (
                <section aria-labelledby="suggested-heading">
                  <h2 id="suggested-heading">Suggested by the workspace</h2>
                  <ul class="items">
                    {recommendations.map(one => (
                      <SuggestionRow key={`${one.card} ${one.evidence}`} suggestion={one} {...cardOf(one.card)} />
                    ))}
                  </ul>
                </section>
              )}
              <section aria-labelledby="connected-heading">
                <h2 id="connected-heading">Connected</h2>
                {others.length === 0 ? (
                  <p class="quiet">What agents use outside of the workspace appears here. Connect something below.</p>
                ) : (
                  <ul class="items">
                    {others.map(one => (
                      <ConnectionRow key={one.id} connection={one} {...cardOf(one.card ?? one.kind)} />
                    ))}
                  </ul>
                )}
              </section>
            </>
          )
        }}
      </Loaded>
      <section aria-labelledby="catalog-heading">
        <h2 id="catalog-heading">Connect something</h2>
        <Loaded query={catalog}>
          {({ categories }) => (
            <>
              {categories.map(({ id, label, hint }) => (
                <section key={id} class="stack" aria-label={visibleName(label)}>
                  <h3>{visibleName(label)}</h3>
                  <p class="quiet">{visibleName(hint)}</p>
                  <ul class="items">
                    {[...cards.values()]
                      .filter(({ category }) => category === id)
                      .map(card => (
                        <Item
                          key={card.id}
                          title={
                            <>
                              <CardArt card={card} /> {visibleName(card.name)}
                            </>
                          }
                          state={card.available ? undefined : ['warn', 'Unavailable']}
                          detail={visibleName(card.reason ?? card.description)}
                        >
                          {card.available && (!card.singleton || card.instances.length === 0) && (
                            <FormButton
                              label="Connect"
                              about={visibleName(card.name)}
                              opened={card.id === wanted}
                              form={close => <ConnectForm card={card} close={close} />}
                            />
                          )}
                        </Item>
                      ))}
                  </ul>
                </section>
              ))}
            </>
          )}
        </Loaded>
      </section>
    </PageFrame>
  )
}
