"""Texts with secrets, and innocent texts of physics, Dask and Python, for `test_corpus.py`.

The forms are those of the rules of gitleaks, detect-secrets and TruffleHog, and of programs
that analyses use; all values are made up. No line contains a whole token, so that no scanner
reports this file: ``TOKENS`` has the fixed part, and the characters and number of the others.
"""

#: The secret in a form.
SLOT = "§"

#: Values of the forms.
VALUES = ["hunter2", "s3cr3t-Value_9", "correcthorse", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"]

HEX, UPPER, LOWER, ALNUM = "hex", "upper", "lower", "alnum"

#: Tokens of services: the fixed parts, each with characters and number of those that follow.
TOKENS = [
    ("A3-", (UPPER, 6), "-", (UPPER, 11), "-", (UPPER, 5), "-", (UPPER, 5), "-", (UPPER, 5)),
    ("ops_", "eyJ", (ALNUM, 250)),
    ("p8", "e-", (ALNUM, 32)),
    ("AGE-SECRET", "-KEY-1", (UPPER, 58)),
    ("pat", (ALNUM, 14), ".", (HEX, 64)),
    ("LT", "AI", (ALNUM, 20)),
    ("sk-", "ant-", "admin01-", (ALNUM, 93), "AA"),
    ("sk-", "ant-", "api03-", (ALNUM, 93), "AA"),
    ("AK", "Cp", (ALNUM, 69)),
    ("cmV", "md", (ALNUM, 59)),
    ("AK", "IA", (UPPER, 16)),
    ("AS", "IA", (UPPER, 16)),
    ("AB", "IA", (UPPER, 16)),
    ("AC", "CA", (UPPER, 16)),
    ("A3", "TX", (UPPER, 16)),
    ("AB", "SK", (ALNUM, 120)),
    ("bedrock-api", "-key-", (ALNUM, 30)),
    ((ALNUM, 3), "8Q", "~", (ALNUM, 34)),
    ("CLOJ", "ARS_", (LOWER, 60)),
    ("da", "pi", (HEX, 32)),
    ("do", "p_v1_", (HEX, 64)),
    ("do", "o_v1_", (HEX, 64)),
    ("do", "r_v1_", (HEX, 64)),
    ("dp.", "pt.", (ALNUM, 43)),
    ("duf", "fel_test_", (ALNUM, 43)),
    ("dt0", "c01.", (ALNUM, 24), ".", (ALNUM, 64)),
    ("EZ", "AK", (ALNUM, 54)),
    ("EZ", "TK", (ALNUM, 54)),
    ("EA", "AM", (ALNUM, 100)),
    ("FLW", "SECK_TEST-", (HEX, 32), "-X"),
    ("fo", "1_", (ALNUM, 43)),
    ("fm", "2_", (ALNUM, 100)),
    ("fio", "-u-", (ALNUM, 64)),
    ("AI", "za", (ALNUM, 35)),
    ("gh", "p_", (ALNUM, 36)),
    ("gh", "o_", (ALNUM, 36)),
    ("gh", "u_", (ALNUM, 36)),
    ("gh", "s_", (ALNUM, 36)),
    ("gh", "r_", (ALNUM, 36)),
    ("github", "_pat_", (ALNUM, 82)),
    ("gl", "pat-", (ALNUM, 20)),
    ("gl", "dt-", (ALNUM, 20)),
    ("gl", "ffct-", (ALNUM, 20)),
    ("gl", "ft-", (ALNUM, 20)),
    ("gl", "imt-", (ALNUM, 25)),
    ("gl", "agent-", (ALNUM, 50)),
    ("gl", "oas-", (ALNUM, 64)),
    ("gl", "ptt-", (HEX, 40)),
    ("gl", "rt-", (ALNUM, 20)),
    ("gl", "soat-", (ALNUM, 20)),
    ("gl", "cbt-1a_", (ALNUM, 20)),
    ("GR", "1348941", (ALNUM, 20)),
    ("gl", "c_", (ALNUM, 40)),
    ("gl", "sa_", (ALNUM, 32), "_", (HEX, 8)),
    ("pat.", (ALNUM, 22), ".", (ALNUM, 24), ".", (ALNUM, 20)),
    ((ALNUM, 14), ".atlas", "v1.", (ALNUM, 64)),
    ("HRKU", "-AA", (ALNUM, 58)),
    ("hf", "_", (ALNUM, 34)),
    ("api", "_org_", (LOWER, 34)),
    ("lin", "_api_", (ALNUM, 40)),
    ("lsv2", "_pt_", (HEX, 32), "_", (HEX, 10)),
    ((HEX, 32), "-us", "12"),
    ((ALNUM, 6), "_", (ALNUM, 29), "_mm", "k"),
    ("NR", "AK-", (UPPER, 27)),
    ("nt", "n_", (ALNUM, 46)),
    ("nv", "api-", (ALNUM, 64)),
    ("np", "m_", (ALNUM, 36)),
    ("AP", "I-", (UPPER, 26)),
    ("sk-", "proj-", (ALNUM, 74)),
    ("sk-", "svcacct-", (ALNUM, 74)),
    ("sk-", "or-v1-", (HEX, 64)),
    ("sk-", (ALNUM, 20), "T3Blbk", "FJ", (ALNUM, 20)),
    ("sha256", "~", (ALNUM, 43)),
    ("pp", "lx-", (ALNUM, 48)),
    ("psc", "ale_tkn_", (ALNUM, 43)),
    ("psc", "ale_pw_", (ALNUM, 43)),
    ("PM", "AK-", (HEX, 24), "-", (HEX, 34)),
    ("pn", "u_", (ALNUM, 36)),
    ("pu", "l-", (HEX, 40)),
    ("py", "pi-", "AgEIcHlwaS5vcmc", (ALNUM, 60)),
    ("r8", "_", (ALNUM, 37)),
    ("rd", "me_", (LOWER, 70)),
    ("ruby", "gems_", (HEX, 48)),
    ("tk", "-us-", (ALNUM, 48)),
    ("SG", ".", (ALNUM, 22), ".", (ALNUM, 43)),
    ("xk", "eysib-", (HEX, 64), "-", (ALNUM, 16)),
    ("sn", "tryu_", (HEX, 64)),
    ("sm", "_aat_", (ALNUM, 16)),
    ("ship", "po_live_", (HEX, 40)),
    ("shp", "at_", (HEX, 32)),
    ("shp", "ca_", (HEX, 32)),
    ("shp", "pa_", (HEX, 32)),
    ("shp", "ss_", (HEX, 32)),
    ("xo", "xb-", "123456789012-", (ALNUM, 24)),
    ("xo", "xp-", "123456789012-", (ALNUM, 28)),
    ("xo", "xe.xo", "xp-1-", (UPPER, 163)),
    ("xa", "pp-1-A0", (UPPER, 8), "-1234567890-", (HEX, 30)),
    ("sg", "p_", (HEX, 40)),
    ("sq", "0atp-", (ALNUM, 22)),
    ("sq", "0csp-", (ALNUM, 43)),
    ("sk", "_live_", (ALNUM, 24)),
    ("rk", "_test_", (ALNUM, 24)),
    ("sk", "_test_", (ALNUM, 24)),
    ("wh", "sec_", (ALNUM, 32)),
    ("12345", "67890:", "AA", (ALNUM, 33)),
    ("S", "K", (HEX, 32)),
    ("tf", "p_", (ALNUM, 59)),
    ("hv", "s.", (ALNUM, 90)),
    ("hv", "b.", (ALNUM, 138)),
    ("AQ", "VN", (ALNUM, 36)),
    ("ya", "29.", (ALNUM, 60)),
    ("GOC", "SPX-", (ALNUM, 28)),
    ("1//", "0", (ALNUM, 60)),
    ("dckr", "_pat_", (ALNUM, 27)),
    ("dckr", "_oat_", (ALNUM, 32)),
    ("ATA", "TT3x", (ALNUM, 180)),
    ("ATB", "B", (ALNUM, 32)),
    ("gs", "k_", (ALNUM, 52)),
    ("M", (ALNUM, 23), ".", (ALNUM, 6), ".", (ALNUM, 27)),
    ("ph", "c_", (ALNUM, 43)),
    ("tv", "ly-", (ALNUM, 32)),
    ("fi", "gd_", (ALNUM, 40)),
    ("MDA", (ALNUM, 60)),
    ("ey", "J", (ALNUM, 20), ".ey", "J", (ALNUM, 30), ".", (ALNUM, 43)),
]  # fmt: skip

#: Texts with a secret: that and nothing else is replaced, or what is between « and ».
FORMS = r"""
password=§
password = §
password: §
password:§
password="§"
password = '§'
"password": "§"
'password': '§'
{"password":"§"}
{"user":"me","password":"§","n":1}
{\"password\": \"§\"}
"{\"user\": \"me\", \"password\": \"§\"}"
{'user': 'me', 'password': '§'}
('password', '§')
("password", "§")
[('user', 'me'), ('password', '§')]
dict_items([('password', '§'), ('n', 1)])
("t-password", "§", 1)
('t-password', '§', 1)
('my-secret', '§', 0, 3)
Namespace(user='me', password='§', n=1)
Config(password='§')
connect(host, password="§")
connect(host, 'me', passwd='§')
<password>§</password>
<Password>§</Password>
<add key="Password" value="§" />
<property name="password" value="§"/>
<property name="db.password"><value>§</value></property>
{"name":"TOKEN","value":"§"}
{"name": "DB_PASSWORD", "value": "§"}
{"value": "§", "name": "DB_PASSWORD"}
{"key": "api_key", "value": "§"}
{'name': 'TOKEN', 'value': '§'}
{"name":"TOKEN","secure":true,"value":"§"}
{\"name\":\"TOKEN\",\"value\":\"§\"}
[{"name": "HOST", "value": "h"}, {"name": "TOKEN", "value": "§"}]
{"Name": "X-Auth-Token", "Value": "§"}
- name: DB_PASSWORD
  value: §
--password=§
--password §
-password §
--password '§'
--password "§"
['run.py', '--password=§', '-n', '4']
['run.py', '--password', '§', '-n', '4']
["run.py", "--api-key", "§"]
[--password=§]
(run --password=§) done
run(--token=§), then
run.py --token=§ --n=3
run.py --access-token § in.root
run.py --secret-key=§
run.py --client-secret § out
mysql -u me -p§ db
mysqldump --single-transaction -u me -p§ db > x.sql
mysqladmin -h host -u root -p§ status
mariadb -u me -p§
mariadb-dump -u me -p§ db
/usr/bin/mysql -ume -p§ -e 'select 1'
['mysql', '-u', 'me', '-p§', 'db']
sshpass -p § ssh h
sshpass -p§ ssh h
redis-cli -h h -a § ping
ldapsearch -x -D cn=me -w § -b dc=x
mongodump --host h -u me -p § --out x
docker login -u me -p § registry
sqlcmd -S h -U me -P § -Q x
unzip -P § a.zip
smbclient //h/share -U me%§
curl -u «me:§» https://h/x
curl --user «me:§» https://h/x
curl -H "X-Api-Key: §" https://h
curl -H 'PRIVATE-TOKEN: §' https://h
openssl enc -aes-256-cbc -pass pass:§ -in x
PGPASSWORD=§ psql -h h
MYSQL_PWD=§ mysql db
https://«me:§»@h/x
https://«me:§»@h:8443/x?y=1
postgresql://«me:§»@h:5432/db
postgresql+psycopg2://«me:§»@h/db
mysql+pymysql://«me:§»@h/db
mongodb+srv://«me:§»@h/db?retryWrites=true
redis://«:§»@h:6379/0
amqp://«me:§»@h:5672/vhost
ftp://«me:§»@h/f
ssh://«me:§»@h:22
smtp://«me:§»@h:587
root://«me:§»@h:1094//store/f.root
s3://«me:§»@h/bucket
git clone https://«oauth2:§»@git.h/g/r.git
git+https://«me:§»@h/r.git
pip install --index-url https://«me:§»@h/simple x
url=https%3A%2F%2F«me%3A§»%40h%2Fx
https://h/x?token=§
https://h/x?access_token=§&y=1
https://h/x?y=1&api_key=§
https://h/x?key=§
https://h/x?apikey=§
https://h/x?pass=§&y=1
https://h/x?password=§&y=1
https://h/x?auth=§
https://h/f.root?authz=§
https://h/f.root?authz=Bearer%20§
root://h//store/f.root?authz=Bearer%20§&xrd.wantprot=unix
root://h//store/f.root?xrd.wantprot=ztn,unix&authz=§
davs://h/store/f.root?authz=§
https://h/b/f?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=§
https://h/b/f?X-Amz-Security-Token=§&X-Amz-Date=20260101T000000Z
https://h/b/f?X-Goog-Signature=§&X-Goog-Expires=3600
https://h/b/f?Expires=1700000000&Signature=§
https://a.blob.h/c/f?sv=2022-11-02&se=2026-01-01&sp=r&sig=§
https://a.blob.h/c/f?sig=§&sv=2022-11-02&sp=r
https://h/x%3Faccess_token%3D§%26y%3D1
https://h/x?redirect=%2Fy%3Ftoken%3D§
https://hooks.slack.com/services/§
https://h/path;jsessionid=§
DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§;EndpointSuffix=x
Endpoint=sb://h/;SharedAccessKeyName=Root;SharedAccessKey=§
Server=h;Database=d;User Id=me;Password=§;Encrypt=true
Server=h;UID=me;PWD=§;
host=h port=5432 dbname=d user=me password=§
jdbc:postgresql://h/db?user=me&password=§
Authorization: Bearer §
Authorization: bearer §
Authorization: Basic §
Authorization: token §
Authorization: AWS §
Authorization: Digest §
Authorization: Negotiate §
Authorization: §
authorization: Bearer §
Proxy-Authorization: Basic §
{'Authorization': 'Bearer §'}
{"Authorization": "Bearer §", "Accept": "x"}
{'authorization': 'Basic §'}
headers={'Authorization': f'Bearer §'}
headers = {"X-API-Key": "§"}
X-Auth-Token: §
X-Rucio-Auth-Token: §
X-Api-Key: §
X-Vault-Token: §
PRIVATE-TOKEN: §
Job-Token: §
Cookie: «session=§»
Set-Cookie: «sid=§; Path=/; HttpOnly»
set-cookie: §
JSESSIONID=§
Ocp-Apim-Subscription-Key: §
machine h login me password §
default login me password §
machine h login me account a password §
h:5432:db:me:§
*:*:*:me:§
[db]\nuser = me\npassword = §
[default]\naws_secret_access_key = §
aws_session_token = §
[rucio]\npassword = §
password: |
  §
token: >-
  §
api_token: §
access_token: "§"
refresh_token: '§'
id_token=§
client_secret: §
client-secret = "§"
clientSecret: "§",
oauth_token_secret=§
consumer_secret=§
app_secret: §
secret=§
secret: §
secret_key=§
SECRET_KEY = '§'
secretKey = "§"
api_key=§
apiKey: '§'
api-key: §
apikey=§
api key: §
access_key=§
accessKey: §
private_key=§
encryption_key = §
signing_key: §
service_key=§
client_key=§
db_key=§
deploy_key: §
webhook_key=§
license_key: §
openai_key=§
stripe_key: §
master key: §
storage_key=§
hmac_key=§
auth_key=§
auth=§
auth: §
auth=«('me', '§')»
SecretStr('§')
jdbc:oracle:thin:bob/§@h:1521:x
credential=§
credentials: §
creds=§
passphrase=§
pass_phrase: §
passwd=§
passcode: §
pwd=§
pw=§
pw: §
db_pw=§
bind_pw=§
root_pw: §
user=me pass=§
user: me\npass: §
{'user': 'me', 'pass': '§'}
{"username": "me", "pass": "§"}
login=me, pass=§
db_pass=§
DB_PASS=§
smtp_pass: §
ldap_pass=§
admin_pass=§
userpass=§
tok=§
tok: §
jwt=§
jwt_token: §
bearer=§
bearer_token=§
macaroon=§
keytab=§
keytab: §
--keytab=§
sessionid=§
session_key: §
cookie: §
csrftoken=§
csrf_token: §
authz=§
authn: §
oauth=§
x-auth: §
hub_signature=§
x-amz-signature: §
GITHUB_PAT=§
GITHUB_TOKEN=§
GH_TOKEN=§
GITLAB_TOKEN=§
CI_JOB_TOKEN=§
AWS_SECRET_ACCESS_KEY=§
AWS_SESSION_TOKEN=§
AZURE_CLIENT_SECRET=§
AZURE_STORAGE_KEY=§
HF_TOKEN=§
HUGGING_FACE_HUB_TOKEN=§
OPENAI_API_KEY=§
ANTHROPIC_API_KEY=§
WANDB_API_KEY=§
NPM_TOKEN=§
PYPI_TOKEN=§
TWINE_PASSWORD=§
DOCKER_PASSWORD=§
SLACK_BOT_TOKEN=§
SENTRY_AUTH_TOKEN=§
DATABASE_PASSWORD=§
POSTGRES_PASSWORD=§
MYSQL_ROOT_PASSWORD=§
REDIS_PASSWORD=§
RABBITMQ_DEFAULT_PASS=§
MINIO_SECRET_KEY=§
S3_SECRET=§
S3_ACCESS_KEY=§
GOOGLE_API_KEY=§
CLOUDFLARE_API_TOKEN=§
DIGITALOCEAN_TOKEN=§
HEROKU_API_KEY=§
TWILIO_AUTH_TOKEN=§
SENDGRID_API_KEY=§
STRIPE_SECRET_KEY=§
MAILGUN_API_KEY=§
TELEGRAM_BOT_TOKEN=§
DISCORD_TOKEN=§
JUPYTERHUB_API_TOKEN=§
JUPYTER_TOKEN=§
DASK_GATEWAY__AUTH__PASSWORD=§
BEARER_TOKEN=§
SCITOKEN=§
RUCIO_PASSWORD=§
CONDOR_PASSWORD=§
SEC_PASSWORD = §
KUBE_TOKEN=§
VAULT_TOKEN=§
DJANGO_SECRET_KEY=§
FLASK_SECRET_KEY=§
JWT_SECRET=§
export API_KEY=§
export SECRET="§"
set TOKEN=§
os.environ["API_TOKEN"] = "§"
os.environ['DB_PASSWORD']='§'
os.getenv("API_TOKEN", "§")
os.environ.get('SECRET_KEY', '§')
token = "§"
token: str = "§"
self.token = '§'
password := "§"
password => "§"
if password == "§":
assert token != '§'
storage_options={"key": "§", "anon": false}
storage_options={'token': '§', 'anon': False}
fs = S3FileSystem(key="x", secret="§")
Client(address, security=Security(tls_client_key="§"))
gateway = Gateway(auth=«BasicAuth(password="§")»)
HTTPBasicAuth(«'me', '§»')
login failed for me with password '§' at h
OSError: [3010] cannot open root://h//f.root?authz=§: permission denied
ValueError: invalid token='§'
requests.exceptions.HTTPError: 401 for url: https://h/x?access_token=§
refused: {"error": "x", "access_token": "§"}
GET /x?token=§ HTTP/1.1
2026-01-01 00:00:00 - INFO - password=§ user=me
level=info token=§ msg="x"
"""

#: Texts that remain as they are.
INNOCENT = r"""
token_muon=medium
token_muon: 0.25
{'token_muon': 'tight', 'n': 3}
{"token_muon": "loose"}
{'proxyMET': 'puppi'}
proxyMET=PuppiMET_pt
proxyMET: 43.2
proxy_weight=0.98
proxy_weight: genWeight
{'proxy_weight': 'LHEWeight_originalXWGTUP'}
das_key=/DYJetsToLL_M-50_TuneCP5_13TeV-amcatnloFXFX-pythia8/RunIISummer20UL18NanoAODv9/NANOAODSIM
{'das_key': '/TTToSemiLeptonic_TuneCP5_13TeV/RunIISummer20UL17NanoAODv9/NANOAODSIM'}
xsec_key=ttH_nonbb
{'xsec_key': 'DYJetsToLL_M-50'}
xsec_key: WJetsToLNu_HT-100To200
dataset_key=DYJets
{"dataset_key": "SingleMuon_Run2018A"}
dataset_key: TTTo2L2Nu__2018
sort_key=pt
sort_key: Jet_btagDeepFlavB
{'sort_key': 'eta', 'reverse': True}
hist_key=njet_4j2b
hist_key: m_jj
{'hist_key': 'mass_SR_2018'}
sig=3.2
sig: 4.1
sig=ttH_M125
sig:ttH_M125
sig: ggH
signature=(i8,f8)->f8
signature: float64(float64, int32)
{'signature': 'x86_64', 'sig': 'VBFH_M125'}
{"signature": "T1tttt_1500_100"}
signature = inspect.signature(fun)
pass=1
pass=0
pass: 12000
pass: 0.873
pass=SR0
hist-pass=SR0
hist-pass=SR9
hist-pass=CR_tt_2018
pass=loose
pass:tight
pass=medium
{'pass': 1200, 'fail': 300}
{"pass": "SR1"}
{'pass': True}
cut1 pass=1200 fail=30 eff=0.97
n_pass=12, n_fail=3
jet_pass=tight
fit_pass:SR:2018
pass_trigger: HLT_IsoMu24
pass_2018=1
muon_pass: mediumId
sig_xsec=0.031
sig_eff: 0.87
sig=100 bkg=2000 s/sqrt(b)=2.2
nsig=120.3 nbkg=3021.8
sigma=1.2
significance: 4.9
significance=5.1sigma
DYJets__key=M50
DYJets__key=M50/pass=1/part-0.parquet
root://eospublic.cern.ch//eos/opendata/cms/DYJets__key=M50/pass=1.root
/eos/user/a/alice/ntuples/pass=1/sig:ttH_M125.root
/eos/cms/store/mc/RunIISummer20UL18NanoAODv9/DYJetsToLL_M-50/NANOAODSIM/file.root
/store/data/Run2018A/SingleMuon/NANOAOD/UL2018_MiniAODv2_NanoAODv9-v2/0A5F3E2B-1C4D-4E5F.root
root://cms-xrd-global.cern.ch//store/mc/x/y/9F3B2C1A-7E6D-4C5B-A0F1-E2D3C4B5A697.root
root://xrootd-cms.infn.it:1194//store/mc/file.root
davs://xrootd.example.org:1094/store/user/file.root
https://cernbox.cern.ch/files/spaces/eos/user/a/alice
s3://bucket/prefix/part-00000-of-00010.parquet
gs://bucket/dataset=mc/year=2018/key=12/part.0.parquet
file:///tmp/dask-worker-space/worker-abc123/storage
hdfs://namenode:8020/user/alice/data
tcp://127.0.0.1:40000
tls://10.0.0.1:8786
tcp://[fe80::1]:8786
inproc://192.168.1.1/1234/1
http://127.0.0.1:8787/status
ucx://10.0.0.1:13337
scheduler-address: tcp://10.1.2.3:8786
nanny:tcp://127.0.0.1:33445
read-parquet-0123456789abcdef0123456789abcdef
('read-parquet-0123456789abcdef0123456789abcdef', 3)
('getitem-d57ec27ec2573513188be832b927b48f', 2, 0)
('get-token-d57ec27ec2573513188be832b927b48f', 'SR1', 2)
('sum-aggregate-d57ec27ec2573513188be832b927b48f', 0)
lambda-d57ec27ec2573513188be832b927b48f
MyProcessor-d57ec27ec2573513188be832b927b48f
task-d57ec27ec2573513188be832b927b48f
mask-d57ec27ec2573513188be832b927b48f
sk-d57ec27ec2573513188be832b927b48f
finalize-hlgfinalizecompute-1b2c3d4e5f60718293a4b5c6d7e8f901
('token', 'SR1')
('sig', 'ggHH')
('pass', 'SR1', 3)
('pass', 0)
('signal_key', 'M125', 1)
('hist', 'pass=1', 0)
('x-password', 3, 1)
update_graph-1700000000.5
task-finished-1700000000.123456
task-erred-1700000000.5
handle-worker-cleanup-1700000000.5
ensure-task-exists-1700000000.5
stimulus_id: client-releases-keys-1700000000.5
processing-tasks
lost-computed-tasks
3d594650-3436-4bf2-a2d9-0e1d0d4f2b4c
da39a3ee5e6b4b0d3255bfef95601890afd80709
commit da39a3ee5e6b4b0d3255bfef95601890afd80709
git commit 1a2b3c4d, dirty
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
md5=d41d8cd98f00b204e9800998ecf8427e
adler32: 0x1a2b3c4d
digest=9f86d081884c7d659a2feaa0c55ad015
cache_key=d41d8cd98f00b204e9800998ecf8427e
key=abc, key: abc, keys=['a'], key='abc'
key='sum-0123abcd'
{'key': 'sum-d57ec27ec2573513188be832b927b48f', 'keys': ['a']}
lost key 'sum-0123abcd', no such key: abc12345
no key named 'Muon_pt' in file
keys: Events;1, Runs;1, LuminosityBlocks;1
foreign key, primary_key=id, key_prefix=hist
groupby key: dataset
partition_key=run
index_key: event
join_key=event_id
row_key: 12
dict_keys(['Muon_pt', 'Jet_eta'])
KeyError: 'Muon_pt'
KeyError: "key not found: 'pass'"
not find branch 'nJet'
uproot.exceptions.KeyInFileError: not found: 'Events'
the author: me, the design: x, compass=north, monkey: 1, passed=3, signal: 11
author=Alice Smith
authors: A. Smith and B. Jones
author_email: alice@cern.ch
authority=INFN
authorized: True
authentication failed
passport
passport_number_field: none
bypass=True
bypass_cache: 1
compass
trespass
passenger=12
passes: 3
passed=120 failed=3
passing cuts: 12
passthrough=True
pass_through: yes
pass
    pass
passive
tokenize: 12, n_tokens=12, max_tokens: 4096
tokenizer=BertTokenizer
tokenizer: bert-base-uncased
tokenized 12 sentences
dask.base.tokenize(x)
dask.tokenize.ensure-deterministic: True
n_tokens=128000
num_tokens: 4096
tokens_per_second=1234.5
max_new_tokens=256
token_count: 12
token_type_ids
token_type=bearer
token_url=https://h/oauth/path
token_endpoint: https://h/path
token_classification
token_embedding=768
unexpected token ')' at line 3
expected token 'end of file' in x
SyntaxError: invalid token
token=None, password=None
password: null
secret=True
token: str
def f(token: str, password: str = None) -> None:
def login(user, password):
password = getpass.getpass()
password authentication failed
invalid password
token has expired
a secret somewhere
the secret is out
no secrets were found
secretary=Alice
secretion
password_file: /etc/secrets/db
password_file=/run/secrets/db_password
token_file: /run/user/1000/bt_u1000
key_file=/etc/ssl/host.pem
credentials_path: /home/alice/.config/x.json
secret_name: my-db
secret_type: Opaque
password_min_length=12
password_policy: strong
auth_type=basic
auth_method: kerberos
auth_url: https://h/auth
proxy_type=http
X509_USER_PROXY=/tmp/x509up_u1000
voms proxy /tmp/x509up_u1000 expires in 12:00:00
proxy: dashboard
proxy_port=8888
proxied=True
approximate=0.5
approx
no_proxy=localhost
jupyter-server-proxy
credit=12
creditability
incredible
sacred: True
cookiecutter
bearer of news
Bearer token expired; basic authentication failed
basic selection applied
Basic cuts: pt > 30
Basic
basic_info: none
digest: no
signed=True
assigned: 12
unsigned int
signal=11
signal: SIGTERM
SIGKILL
sigmoid=0.5
sighting
design=v2
resign
insignificant: 0.1
patch=12
path=/eos/user/a/alice
pattern=*.root
compat=True
pat_muon=12
pat: slimmedMuons
PAT_version=12
slimmedPatTrigger
pw=0.93
pwd
pwr=12
pw: 1.02
stok
tok: 0.4
stock=3
kitok
tokyo=1
sessions: 12
session=run-3
Session closed
keyboard=us
keyword=signal
keywords: a, b
monkey: 1
turkey=2
hockey
whiskey_tango
jockey
keystone
keyed_hash
MuonKey=12
monkeypatch
Jet_pt, Jet_eta, Jet_phi, Jet_mass, Jet_btagDeepFlavB
Muon_pfRelIso04_all
HLT_IsoMu24, HLT_Ele32_WPTight_Gsf
Flag_goodVertices
LHEPdfWeight, LHEScaleWeight
GenPart_genPartIdxMother
FatJet_particleNet_TvsQCD
PV_npvsGood
Electron_mvaFall17V2Iso_WP90
Tau_idDeepTau2017v2p1VSjet
SoftActivityJetHT10
nJet-data,Jet_pt-offsets
b'\x00\x01', bytes of 12
dask.array<getitem, shape=(100, 100), dtype=float64, chunksize=(10, 10)>
<Future: finished, type: int, key: inc-d57ec27ec2573513188be832b927b48f>
<Client: 'tcp://127.0.0.1:40000' processes=4 threads=8, memory=16.00 GiB>
<WorkerState 'tcp://127.0.0.1:40000', name: 0, status: running, memory: 0, processing: 3>
<Task 'inc-1' inc(...)>
Alias(key='a', target='b')
distributed.worker - WARNING - Compute Failed
Key:       inc-d57ec27ec2573513188be832b927b48f
State:     executing
Function:  execute_task
args:      ((<function inc at 0x7f1234567890>, 1))
kwargs:    {}
Exception: "ZeroDivisionError('division by zero')"
Worker exceeded 95% memory budget. Restarting
Event loop was unresponsive in Worker for 3.21s.
Attempted to run task 'sum-0123abcd' on 4 different workers
CancelledError: inc-1
Unmanaged memory use is high. Process memory: 1.2 GiB
full garbage collection took 11% CPU time recently
  File "/usr/lib/python3.11/site-packages/distributed/worker.py", line 2271, in _run
  File "/x/auth.py", line 12, in get_token
  File "/x/site-packages/keyring/core.py", line 60, in get_password
  File "/x/passlib/hash.py", line 3, in <module>
    return tokens[key]
    token = next(tokens)
    for key, value in items.items():
    result = self.passes(cut)
    events = events[sig_mask]
    hist.fill(dataset=dataset, region="SR", systematic=syst)
    raise ValueError(f"no key {key!r}")
    if key not in self._keys:
    with open(path) as f: pass
    except KeyError: pass
    try: import secrets
import secrets
from getpass import getpass
import tokenize, token, keyword
secrets.token_hex(16)
/usr/lib/python3.11/secrets.py:12: in choice
/x/site-packages/token.py:12: in parse
test_auth.py::test_login PASSED
distributed.scheduler.work-stealing: true
distributed.comm.timeouts.connect: 30s
distributed.worker.memory.target: 0.6
distributed.comm.tls.ciphers: None
distributed.comm.require-encryption: False
distributed.security
dataframe.shuffle.method: tasks
jobqueue.slurm.cores: 8
jobqueue.htcondor.disk: 10GB
temporary-directory: /tmp
array.chunk-size: 128MiB
walltime=00:30:00
memory='4GiB', nthreads=4
SLURM_JOB_ID=8765432
SLURM_CLUSTER_NAME=cluster
ClusterId = 1
ProcId = 0
RequestMemory = 2048
Requirements = (OpSysAndVer =?= "AlmaLinux9")
+JobFlavour = "workday"
OMP_NUM_THREADS=1
PWD=/home/alice
OLDPWD='/home/alice/a b'
python -m pip install dask
python -u analysis.py -n 4 --executor dask
python run.py --pass 1 --sig ttH
docker run -u 1000:1000 -p 8080:80 image
ssh -p 2222 host
rsync -avP src dst
mkdir -p /tmp/a/b
xrdcp root://h//a.root /tmp
mysql -u me db
curl -u https://h/x
curl -fsSL https://h/x
condor_submit -pool h job.sub
kinit alice@CERN.CH
voms-proxy-init -voms cms
numba.jit(signature='f8(f8)')
np.ufunc.signature: (n),(n)->()
inspect._empty
xsec=831.76, lumi=59.74
2018: {'lumi': 59.83, 'key': 12}
BDT_score=0.93 sig_prob=0.88
m_H=125.38 GeV, pT(ttH)
E=mc^2
chi2/ndf=1.02, p=0.43
H->ZZ->4l
T1tttt(1500,100)
WJetsToLNu_HT-2500ToInf_TuneCP5_13TeV-madgraphMLM-pythia8
GluGluHToTauTau_M125_TuneCP5_13TeV-powheg-pythia8
SingleElectron_Run2017F-UL2017_MiniAODv2_NanoAODv9-v1
mc16_13TeV.410470.PhPy8EG_A14_ttbar_hdamp258p75_nonallhad.DAOD_PHYS.e6337_s3126_p4514
user.alice.mc23_13p6TeV.601229.PhPy8EG.v3_output
data22_13p6TeV.periodF.physics_Main.PhysCont.DAOD_PHYSLITE.grp22_v02_p5631
group.phys-exotics.key_v2
LHCb_2018_Beam6500GeV_VeloClosed_MagDown
ALICE.LHC18q.pass3
LHC18q_pass3_AOD
LHC15o/pass1/AOD194
auth: none
tokens=1500
apikeys: 0
pwd=/home/alice/work
cred=0.5
SSH_AUTH_SOCK=/tmp/ssh-abc/agent.1
{"key": "Jet_pt", "value": 30}
SecretStr('**********')
reco_pass=pass3
"""
