#include "wire/end.h"

#include "wire/calls.h"

void end_encode(paramo_err status, const char *text, struct writer *w)
{
    write_u16(w, (uint16_t)status);
    call_text_encode(text, w);
}

paramo_err end_decode(struct reader *r, paramo_err *status, char *text)
{
    *status = err_from_wire(read_u16(r));
    return call_text_decode(r, text);
}
