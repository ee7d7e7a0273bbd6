#include "app.h"

Progress::Progress(int id) : ps::SimpleApp(id, id)
{
    set_request_handle([this](const ps::SimpleData &req, ps::SimpleApp *app) { OnRequest(req, app); });
}

int Progress::Report(int rows)
{
    return Request(rows, "rows", ps::kScheduler);
}

void Progress::OnRequest(const ps::SimpleData &req, ps::SimpleApp *app)
{
    CHECK_EQ(req.body, "rows");
    total_ += req.head;
    app->Response(req);
}
