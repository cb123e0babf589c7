// SPDX-License-Identifier: Apache-2.0
// A client on the TypeScript SDK v2 for the client scenarios of the conformance suite:
//     node client.mjs URL
// with MCP_CONFORMANCE_SCENARIO, _PROTOCOL_VERSION and _CONTEXT from the suite. It lists all
// there is and uses it; few scenarios need more.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const url = new URL(process.argv.at(-1));
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? '2025-11-25';
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? '';
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const ATTEMPTS = 3; // to be let in

// A user who is always there and always agrees.
class Agreeing {
    clientMetadataUrl = 'https://conformance-test.local/client-metadata.json';
    redirectUrl = 'http://localhost:3000/callback';
    clientMetadata = { client_name: 'conformance-client', redirect_uris: [this.redirectUrl],
        application_type: 'native' };
    information = context.client_id && { client_id: context.client_id, client_secret: context.client_secret,
        issuer: context.issuer };
    callback = null;

    clientInformation() { return this.information || undefined; }
    saveClientInformation(information) { this.information = information; }
    tokens() { return this.kept; }
    saveTokens(tokens) { this.kept = tokens; }
    codeVerifier() { return this.verifier; }
    saveCodeVerifier(verifier) { this.verifier = verifier; }

    async redirectToAuthorization(where) {
        const answer = await fetch(where, { redirect: 'manual' });
        this.callback = new URL(answer.headers.get('location'), where).searchParams;
    }
}

const provider = new Agreeing();

function makeClient() {
    const options = { capabilities: { sampling: {}, roots: {}, elicitation: { form: { applyDefaults: true } } } };
    if (version >= '2026')
        options.versionNegotiation = { mode: scenario === 'request-metadata' ? 'auto' : { pin: version } };
    const client = new Client({ name: 'conformance-client', version: '1.0.0' }, options);
    client.setRequestHandler('elicitation/create', async (request) => ({ action: 'accept',
        content: scenario.startsWith('elicitation') ? {} : fill(request.params.requestedSchema) }));
    client.setRequestHandler('roots/list', async () => ({ roots: [] }));
    client.setRequestHandler('sampling/createMessage', async () => ({ model: 'none', role: 'assistant',
        content: { type: 'text', text: 'sampled' } }));
    return client;
}

// The least that a schema takes.
function fill(schema) {
    const least = { number: 2, integer: 2, boolean: true, object: {}, array: [] };
    return Object.fromEntries(Object.entries(schema?.properties ?? {})
        .map(([name, { type }]) => [name, least[type] ?? 'text']));
}

// Whatever is asked of us, as often as we are sent to the authorization server first.
async function admitted(transport, what) {
    for (let attempt = 1; ; attempt++) {
        try {
            return await what();
        } catch (e) {
            if (!(e instanceof UnauthorizedError) || !provider.callback || attempt === ATTEMPTS)
                throw e;
            const answer = provider.callback;
            provider.callback = null;
            await transport().finishAuth(answer);
        }
    }
}

let client, transport;

async function connect() {
    client = makeClient();
    transport = new StreamableHTTPClientTransport(url, { authProvider: provider });
    await client.connect(transport);
}

async function useTools(ask) {
    const { tools } = await ask(() => client.listTools());
    const focal = tools.find((t) => t.name === 'json_schema_2020_12_tool');
    const calls = context.toolCalls ?? tools.map((t) => ({ name: t.name,
        arguments: focal && t !== focal && t.inputSchema.properties?.schema
            ? { schema: focal.inputSchema } : fill(t.inputSchema) }));
    for (const call of calls)
        await ask(() => client.callTool(call));
}

async function useTheRest(ask) {
    const able = client.getServerCapabilities() ?? {};
    if (able.resources)
        for (const { uri } of (await ask(() => client.listResources())).resources)
            await ask(() => client.readResource({ uri }));
    if (able.prompts)
        for (const { name } of (await ask(() => client.listPrompts())).prompts)
            await ask(() => client.getPrompt({ name }));
}

const ask = (what) => admitted(() => transport, what);
await ask(connect);
await useTools(ask);
await useTheRest(ask);
await client.close();
process.exit(0);
