#include "learn/export/forms.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    export_fn *write;
} forms[] = {
#define FORM(name) {#name, export_##name},
    EXPORT_FORMS(FORM)
#undef FORM
};

export_fn *export_find(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return forms[i].write;
    return NULL;
}

paramo_err export_print(struct output *out, const char *fmt, ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    const int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        return paramo_error_set(PARAMO_E_TOO_LARGE, "a line of the export is too long");
    return output_write(out, text, (size_t)len);
}

paramo_err export_plain(const struct model *model)
{
    if (model->info.calibration.kind != CALIBRATION_NONE)
        return paramo_error_set(
            PARAMO_E_UNSUPPORTED,
            "the model is calibrated, and this form has margins only: train without --calibrate");
    if (model->info.interactions.n > 0)
        return paramo_error_set(
            PARAMO_E_UNSUPPORTED,
            "the model has features of pairs of fields, which programs that read this form do not add: "
            "train without --interactions, or export --to text");
    return PARAMO_OK;
}
