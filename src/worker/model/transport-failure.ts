/**
 * What a socket's error means for a model call, in words a person can act on.
 */
import { ModelFailure } from './model-adapter.ts';

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there; start the server or correct base_url',
  ENOTFOUND: 'the name is unknown; correct base_url or check the network',
  EAI_AGAIN: 'the name could not be looked up now; check the network',
  ELINKLOCAL: 'the name resolves to a link-local address, which is refused',
  ECONNRESET: 'the connection was reset',
  EPIPE: 'the connection was closed',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
  EPROTO: 'it does not speak TLS there; use http in base_url',
};

function reasonOf(code: string, certificate: boolean): string {
  if (certificate) return `its certificate was not accepted (${code})`;
  if (code.startsWith('HPE_')) return 'what it sends is not HTTP';
  return reasons[code] ?? (code === '' ? 'the connection failed' : code);
}

/** @param begun whether the answer's head had come: then the stream broke, else the request never got through */
export function transportFailure(error: NodeJS.ErrnoException, label: string, begun: boolean): ModelFailure {
  const code = error.code ?? '';
  const certificate = /CERT|SELF_SIGNED|ALTNAME|UNABLE_TO_VERIFY/.test(code);
  const reason = reasonOf(code, certificate);
  if (code === 'ELINKLOCAL' || certificate)
    return new ModelFailure('INVALID_REQUEST', `The model server at ${label} is not used: ${reason}.`);
  if (begun) return new ModelFailure('STREAM_CLOSED', `The model server at ${label} broke its answer off: ${reason}.`, { cause: error });
  return new ModelFailure('TRANSPORT', `The model server at ${label} could not be reached: ${reason}.`, { cause: error });
}
